"""A run's directory: one writer at a time, append-only records, checkpoints that are whole or absent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from turnwise.errors import RunError
from turnwise.tasks.core import Json
from turnwise.trainers.run_files import EPISODES, EVALUATIONS, METRICS, OBJECTIVE, RECIPE
from turnwise.trainers.schema import Recipe


class Run:
    """The files of one run (``runs/NAME``)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.model = path / "model"  # where training began
        self.best = path / "best"  # a link to the checkpoint that was best on dev
        self.episodes = path / EPISODES

    def log_metrics(self, update: int, phase: str, values: Mapping[str, Json]) -> None:
        self._append(METRICS, {"update": update, "phase": phase, **values})

    def log_evaluation(self, name: str, mode: str, values: Mapping[str, Json]) -> None:
        self._append(EVALUATIONS, {"name": name, "mode": mode, **values})

    def checkpoint(self, update: int) -> Path:
        return self.checkpoints / f"step-{update:06d}"

    def point_best(self, update: int) -> None:
        """Let ``best`` lead to the checkpoint of this update."""
        aside = self.path / ".best"
        aside.unlink(missing_ok=True)
        aside.symlink_to(self.checkpoint(update).relative_to(self.path))
        aside.replace(self.best)

    def evaluations(self) -> list[dict[str, Json]]:
        """The evaluations logged so far."""
        path = self.path / EVALUATIONS
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    def forget_after(self, update: int) -> None:
        """Drop records of updates that a resumed run will make again."""
        path = self.path / METRICS
        if path.exists():
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.endswith("}")]
            kept = [row for row in rows if row["phase"] != "rl" or row["update"] <= update]
            _write(path, "".join(json.dumps(row) + "\n" for row in kept))
        path = self.path / EVALUATIONS
        if path.exists():
            kept = [row for row in self.evaluations() if row.get("update", 0) <= update]
            _write(path, "".join(json.dumps(row) + "\n" for row in kept))

    def _append(self, name: str, row: Mapping[str, Json]) -> None:
        try:
            with open(self.path / name, "a", encoding="utf-8") as file:
                file.write(json.dumps(row, allow_nan=True) + "\n")
        except OSError as error:
            raise disk_error(self.path / name, error) from error


@contextmanager
def open_run(path: Path, recipe: Recipe, objective: str, *, resume: bool) -> Iterator[Run]:
    """Hold a run's directory for the time of training.

    Raises:
        RunError: another process trains there, a run is there already and ``resume`` is False, or the
            recipe is another than the one that the run was started with.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(path, error) from error
    lock = FileLock(path / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunError(
            f"Another process trains in {path}.", "Wait for it, or choose another --out."
        ) from None
    try:
        _begin(path, recipe, objective, resume)
        yield Run(path)
    finally:
        lock.release()


def _begin(path: Path, recipe: Recipe, objective: str, resume: bool) -> None:
    frozen, text = path / RECIPE, recipe.to_yaml()
    if frozen.exists() and not resume:
        raise RunError(f"{path} holds a run already.", "Go on with --resume, or choose another --out.")
    if frozen.exists() and frozen.read_text("utf-8") != text:
        changed = _changed_keys(frozen.read_text("utf-8"), text)
        raise RunError(
            f"The recipe differs from the one that {path} was started with, in {', '.join(changed)}.",
            "Resume with the same recipe and --set options, or start another run.",
        )
    _write(frozen, text)
    _write(path / OBJECTIVE, objective)


def _changed_keys(before: str, after: str) -> list[str]:
    import yaml

    old, new = yaml.safe_load(before), yaml.safe_load(after)
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def _write(path: Path, text: str) -> None:
    aside = path.with_name(path.name + ".new")
    try:
        aside.write_text(text, "utf-8")
        aside.replace(path)
    except OSError as error:
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> RunError:
    """What to tell about a file that cannot be written."""
    remedy = (
        "Free some space and resume the run." if error.errno == 28 else "Check the path and its permissions."
    )
    return RunError(f"{path} cannot be written: {error.strerror}.", remedy)


def summary_writer(path: Path) -> Any:
    """TensorBoard's writer, in ``path/tensorboard``."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(path / "tensorboard"))
