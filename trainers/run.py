"""A run's directory: one writer at a time, append-only records, checkpoints that are whole or absent."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from turnwise.agents.log import cut_log
from turnwise.errors import RunError
from turnwise.tasks.core import Json
from turnwise.trainers.run_files import EPISODES, EVALUATIONS, METRICS, OBJECTIVE, RECIPE, json_lines
from turnwise.trainers.schema import Recipe

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Run:
    """The files of one run (``runs/NAME``)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.model = path / "model"  # made from nothing
        self.start = path / "start"  # where reinforcement began, if a loss compares with it
        self.best = path / "best"  # a link to the checkpoint that was best on dev
        self.episodes = path / EPISODES
        self.tensorboard = path / "tensorboard"

    def log_metrics(self, update: int, phase: str, values: Mapping[str, Json]) -> None:
        """Append what was measured in an update."""
        self._append(METRICS, {"update": update, "phase": phase, **values})

    def log_evaluation(self, update: int, name: str, mode: str, values: Mapping[str, Json]) -> None:
        """Append an evaluation that was made after this update."""
        self._append(EVALUATIONS, {"update": update, "name": name, "mode": mode, **values})

    def checkpoint(self, update: int) -> Path:
        """The folder of the checkpoint after this update."""
        return self.checkpoints / f"step-{update:06d}"

    def point_best(self, update: int) -> None:
        """Let ``best`` lead to the checkpoint of this update."""
        aside = self.path / ".best"
        try:
            aside.unlink(missing_ok=True)
            aside.symlink_to(self.checkpoint(update).relative_to(self.path))
            aside.replace(self.best)
        except OSError as error:
            raise disk_error(self.best, error) from error

    def evaluations(self) -> list[dict[str, Json]]:
        """The evaluations logged so far."""
        return list(json_lines(self.path / EVALUATIONS, []))

    def forget_after(self, update: int) -> None:
        """Drop all records of updates that a resumed run will make again, and torn ends."""
        for name in (METRICS, EVALUATIONS):
            path = self.path / name
            if path.exists():
                kept = [row for row in json_lines(path, []) if _precedes(row, update)]
                write_text(path, "".join(json.dumps(row) + "\n" for row in kept))
        cut_log(self.episodes, lambda record: record.update is None or record.update < update)

    def clear(self) -> None:
        """Drop what an attempt left behind that did not come to its first checkpoint."""
        for path in (self.path / METRICS, self.path / EVALUATIONS, self.episodes, self.best):
            path.unlink(missing_ok=True)
        for path in (self.start, self.tensorboard):
            shutil.rmtree(path, ignore_errors=True)

    def _append(self, name: str, row: Mapping[str, Json]) -> None:
        try:
            with open(self.path / name, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise disk_error(self.path / name, error) from error


def _precedes(row: Mapping[str, Any], update: int) -> bool:
    return row.get("phase") == "warm_start" or row.get("update", 0) <= update


@contextmanager
def open_run(path: Path, recipe: Recipe, objective: str, *, resume: bool) -> Iterator[Run]:
    """Hold a run's directory for the time of training.

    Raises:
        RunError: another process trains there, a run is there already and ``resume`` is False, or the
            recipe is another than the one that the run was started with.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise RunError(
            f"Another process trains in {path}.", "Wait for it, or choose another --out."
        ) from None
    except OSError as error:
        raise disk_error(path, error) from error
    try:
        _begin(path, recipe, objective, resume)
        yield Run(path)
    finally:
        lock.release()


def _begin(path: Path, recipe: Recipe, objective: str, resume: bool) -> None:
    frozen, text = path / RECIPE, recipe.to_yaml()
    if _has_begun(path):
        if not resume:
            raise RunError(f"{path} holds a run already.", "Go on with --resume, or choose another --out.")
        changed = _changed_keys(frozen, text)
        if changed:
            shown = ", ".join(changed[:6]) + (" …" if len(changed) > 6 else "")
            raise RunError(
                f"The recipe differs from the one that {path} was started with, in {shown}.",
                "Resume with the same recipe and --set options, or start another run.",
            )
    write_text(frozen, text)
    write_text(path / OBJECTIVE, objective)


def _has_begun(path: Path) -> bool:
    """Whether there is anything to lose: a start that failed at once leaves only its recipe."""
    checkpoints = path / "checkpoints"
    return (path / METRICS).exists() or (checkpoints.is_dir() and any(checkpoints.iterdir()))


def _changed_keys(frozen: Path, text: str) -> list[str]:
    try:
        before = _leaves(yaml.safe_load(frozen.read_text("utf-8")), "")
    except (OSError, ValueError, yaml.YAMLError):
        return [f"{frozen.name}, which cannot be read"]
    after = _leaves(yaml.safe_load(text), "")
    return sorted(key for key in {*before, *after} if before.get(key) != after.get(key))


def _leaves(value: Any, key: str) -> dict[str, Any]:
    """Dotted key → value; a list is one value."""
    if not isinstance(value, dict):
        return {key: value}
    return {
        k: v for name, item in value.items() for k, v in _leaves(item, f"{key}.{name}".strip(".")).items()
    }


def write_text(path: Path, text: str) -> None:
    """Replace a file by one that is whole.

    Raises:
        RunError: it cannot be written; the old one is intact.
    """
    aside = path.with_name(path.name + ".new")
    try:
        aside.write_text(text, "utf-8")
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> RunError:
    """What to tell about a file that cannot be written."""
    full = "Make room and go on with --resume; what was saved before is intact."
    remedy = full if error.errno in _FULL else "Check the path and its permissions."
    return RunError(f"{path} cannot be written: {error.strerror or error}.", remedy)


def summary_writer(path: Path, update: int) -> Any:
    """TensorBoard's writer; what an earlier process wrote after ``update`` is hidden."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(path), purge_step=update + 1 if update else None)
