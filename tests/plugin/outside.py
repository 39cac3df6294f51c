"""Packages outside of the repository, and the command line where they are installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import forked
from forked import TURNWISE


def install(folder: Path, name: str, sources: dict[str, str]) -> None:
    """A package as pip would lay it out, without pip."""
    package, info = folder / name, folder / f"{name}-1.dist-info"
    package.mkdir(parents=True)
    info.mkdir()
    for file, source in sources.items():
        (package / file).write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[turnwise.plugins]\n{name} = {name}\n")


def turnwise(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line where the packages in ``site`` are installed."""
    return run(TURNWISE, *arguments, cwd=cwd)


def run(code: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run another program there."""
    return forked.run(code, *arguments, cwd=cwd, env=environment(cwd), timeout=280, training=True)


def environment(cwd: Path) -> dict[str, str]:
    """The environment in which those packages are found, and tests/letters.py."""
    path = [str(cwd / "site"), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
