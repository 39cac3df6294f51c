"""Wheel and sdist of this checkout, installed into empty environments: what tests/cli/test_packaging.py uses, and a measurement.

python scripts/packaged.py benchmarks/install.json [EXTRA ...]

The measurement installs the core and each named extra from the index that uv is set up for, downloading nothing twice: what was
not in uv's cache yet is measured again. An extra that fails to install is recorded as such; figures of those that are not named stay.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
UV = [sys.executable, "-m", "uv"] if shutil.which("uv") is None else ["uv"]
UNREACHABLE = (
    "Failed to fetch",
    "Could not connect",
    "dns error",
    "error sending request",
    "timed out",
    "not found in the cache",
)


class NoIndexError(Exception):
    """There is no package index here; the text is what the installer said."""


class Built(NamedTuple):
    """What was built, and in how many seconds."""

    wheel: Path
    sdist: Path
    seconds: float


class Installed(NamedTuple):
    """An environment: its Python, what it weighs (MB of 10⁶ bytes, compiled files with it) and how long it took."""

    python: Path
    megabytes: float
    seconds: float
    packages: int


def copy_tracked(place: Path) -> Path:
    """The files of this checkout that git knows or would know, links as links; building writes beside them."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, place / name
        if not source.exists() or name == ".venv":
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
    return place


def build(place: Path) -> Built:
    """The sdist of a copy of this checkout, and the wheel that comes out of that sdist."""
    since = time.monotonic()
    _run([*UV, "build", "-q", "--out-dir", str(place / "dist"), str(copy_tracked(place / "source"))])
    (wheel,), (sdist,) = (place / "dist").glob("*.whl"), (place / "dist").glob("*.tar.gz")
    return Built(wheel, sdist, time.monotonic() - since)


def install(wheel: Path, place: Path, extra: str = "", *more: str) -> Installed:
    """An empty environment with the wheel (and one of its extras) in it, compiled as pip would."""
    python = place / "bin" / "python"
    _run([*UV, "venv", "-q", "--python", sys.executable, str(place)])
    empty = _megabytes(place)
    since = time.monotonic()
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    _run([*UV, "pip", "install", "-q", "--compile-bytecode", "--python", str(python), wanted, *more])
    seconds = time.monotonic() - since
    packages = len(list(place.glob("lib/python*/site-packages/*.dist-info")))
    return Installed(python, _megabytes(place) - empty, seconds, packages)


def run_in(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``turnwise ARGUMENTS`` of that environment, which sees nothing of ours."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python.with_name("turnwise")), *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def _megabytes(place: Path) -> float:
    return sum(path.lstat().st_size for path in place.rglob("*") if not path.is_dir()) / 1e6


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
        raise NoIndexError(" ".join(done.stderr.split())[-300:])
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


def measure(extras: list[str], before: dict[str, object]) -> dict[str, object]:
    """What the core and the extras weigh, and how long each takes from a warm cache of downloads; ``before`` holds older figures."""
    from turnwise.machine import describe

    figures = dict(before)
    with tempfile.TemporaryDirectory(prefix="turnwise-install-") as folder:
        built = build(Path(folder))
        figures["build"] = {"value": round(built.seconds, 1), "unit": "s"}
        for which, file in (("wheel", built.wheel), ("sdist", built.sdist)):
            figures[which] = {"value": round(file.stat().st_size / 1e6, 2), "unit": "MB"}
        for extra in ("", *extras):
            place, load = Path(folder) / (extra or "core"), round(os.getloadavg()[0], 1)
            try:
                found = install(built.wheel, place, extra)
            except (RuntimeError, NoIndexError) as error:
                figures[extra or "core"] = {"failed": str(error)[-300:]}
                continue
            figures[extra or "core"] = {
                "size": {"value": round(found.megabytes, 1), "unit": "MB"},
                "time": {"value": round(found.seconds, 1), "unit": "s"},
                "packages": {"value": found.packages},
                "load": load,
            }
            print(extra or "core", figures[extra or "core"], file=sys.stderr, flush=True)
            shutil.rmtree(place)
    date = datetime.now(UTC).date().isoformat()
    return {"name": "install", "date": date, "machine": describe(), "figures": figures}


if __name__ == "__main__":
    file = Path(sys.argv[1])
    known = json.loads(file.read_text())["figures"] if file.exists() else {}
    file.write_text(json.dumps(measure(sys.argv[2:], known), indent=2) + "\n")
