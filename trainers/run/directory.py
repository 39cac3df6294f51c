"""A run's directory: one writer at a time, append-only records, checkpoints that are whole or absent."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pydantic
import yaml

from turnwise.agents.log.episode_log import cut_log
from turnwise.durable import LOCK, hold_folder
from turnwise.errors import RunError, TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.tasks.core import Json
from turnwise.trainers.recipe.schema import Recipe, plain
from turnwise.trainers.report.events import EVENTS
from turnwise.trainers.report.records import (
    EPISODES,
    EVALUATIONS,
    HACKS,
    JUDGES,
    LIBRARIES,
    METRICS,
    OBJECTIVE,
    PLANTED,
    RECIPE,
    json_lines,
)
from turnwise.trainers.run.circumstances import STARTED
from turnwise.trainers.run.disk import append_line, disk_error, point, write_text

MAY_CHANGE = frozenset(
    {
        "scale.learners",
        "scale.weights",
        "scale.worker_hosts",
        "scale.worker_hosts_file",
        "scale.token_file",
        "hack_meter.on_alarm",
    }
)
"""Keys of a recipe in which a resumed run may differ from what it was started with."""
WHERE_ENGINES_ARE = frozenset(
    f"engine.options.{name}"
    for name in ("urls", "urls_file", "token_file", "publish_host", "silence_s", "patience_s", "publish_s")
)
"""And these, where engines are elsewhere: which they are, and how they are reached and waited for."""


class RunDirectory:
    """The files of one run (``runs/NAME``)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.warm = path / "warm-start"  # checkpoints within the warm start; removed when it is over
        self.model = path / "model"  # made from nothing
        self.start = (
            path / "start"
        )  # policies from which reinforcement, a phase or a reset began, if anything compares with them
        self.best = path / "best"  # a link to the checkpoint that was best on dev
        self.episodes = path / EPISODES
        self.planted = path / PLANTED
        self.tensorboard = path / "tensorboard"

    def log_metrics(self, update: int, phase: str, values: Mapping[str, Json]) -> None:
        """Append what was measured in an update."""
        self._append(METRICS, {"update": update, "phase": phase, **values})

    def log_evaluation(self, update: int, name: str, mode: str, values: Mapping[str, Json]) -> None:
        """Append an evaluation that was made after this update."""
        self._append(EVALUATIONS, {"update": update, "name": name, "mode": mode, **values})

    def log_hacks(self, update: int, values: Mapping[str, Json]) -> None:
        """Append what the hack meter saw in an update."""
        self._append(HACKS, {"update": update, **values})

    def log_judges(self, update: int, values: Mapping[str, Json]) -> None:
        """Append what was found of a judge, before the run (update 0) or in an update."""
        self._append(JUDGES, {"update": update, **values})

    def checkpoint(self, update: int) -> Path:
        """The folder of the checkpoint after this update."""
        return self.checkpoints / f"step-{update:06d}"

    def started(self, update: int) -> Path:
        """The folder of the policy from which a phase, or what followed a reset, began after this update."""
        return self.start / f"update-{update:06d}"

    def keep_started(self, updates: Collection[int]) -> None:
        """Drop the policies of :meth:`started` that no checkpoint asks for any more."""
        kept = {self.started(update) for update in updates}
        self._clear(*(folder for folder in self.start.glob("update-*") if folder not in kept))

    def point_best(self, update: int) -> None:
        """Point the link ``best`` at the checkpoint of this update."""
        point(self.best, self.checkpoint(update))

    def evaluations(self) -> list[dict[str, Json]]:
        """The evaluations logged so far."""
        return list(json_lines(self.path / EVALUATIONS, []))

    def forget_after(self, update: int) -> list[str]:
        """Drop the records of updates that a resumed run will repeat, and incomplete last lines.

        Returns what is to be reported: an episode log that is damaged is set aside, for no checkpoint depends on it.

        Raises:
            TurnwiseError: metrics or evaluations are damaged.
        """
        self._keep(lambda row: row.get("phase") == "warm_start" or row.get("update", 0) <= update)
        notes: list[str] = []
        for log in (self.episodes, self.planted):
            try:
                cut_log(log, lambda record: record.update is None or record.update <= update)
            except TurnwiseError as error:
                notes.append(self._set_aside(log, error))
        return notes

    def forget_after_warm_step(self, step: int) -> None:
        """Drop everything that came after this step of the warm start.

        Raises:
            TurnwiseError: the metrics are damaged.
        """
        self._keep(lambda row: row.get("phase") == "warm_start" and row.get("update", 0) <= step)
        self._clear(self.episodes, self.planted, self.best, self.start, self.tensorboard)

    def clear(self) -> None:
        """Drop the records of an attempt that ended before its first checkpoint."""
        records = (METRICS, EVALUATIONS, HACKS, JUDGES, STARTED, EVENTS)
        logs = (*(self.path / name for name in records), self.episodes, self.planted)
        self._clear(*logs, self.model, self.start, self.warm, self.best, self.tensorboard)

    def withdraw(self) -> None:
        """Drop a run that was refused before anything was spent, and its folder if nothing else is in it."""
        self.clear()
        self._clear(*(self.path / name for name in (RECIPE, OBJECTIVE, LIBRARIES, LOCK)))
        with contextlib.suppress(OSError):  # somebody else's files stay
            self.path.rmdir()

    def end_warm_start(self) -> None:
        """Drop its checkpoints: the first one of reinforcement is there."""
        self._clear(self.warm)

    def _keep(self, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        for name in (METRICS, EVALUATIONS, HACKS, JUDGES):
            path = self.path / name
            if path.exists():
                kept = [row for row in json_lines(path, []) if wanted(row)]
                write_text(path, "".join(json.dumps(row) + "\n" for row in kept))

    def _set_aside(self, log: Path, error: TurnwiseError) -> str:
        aside = next(
            place
            for number in itertools.count(1)
            if not (place := self.path / f"{log.name.partition('.')[0]}-damaged-{number}.jsonl.zst").exists()
        )
        log.rename(aside)
        return (
            f"{error.cause} The checkpoint is whole, so training goes on; the log is kept as {aside.name} "
            f"(`turnwise repair {self.path}` saves what is whole of it), and a new one begins."
        )

    @staticmethod
    def _clear(*paths: Path) -> None:
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _append(self, name: str, row: Mapping[str, Json]) -> None:
        append_line(self.path / name, json.dumps(row).encode())


@contextmanager
def open_run(path: Path, recipe: Recipe, objective: str, *, resume: bool) -> Iterator[RunDirectory]:
    """Open a run's directory, locked for other processes while training lasts.

    Raises:
        RunError: another process trains there, a run is there already and ``resume`` is False, or the
            recipe is another than the one that the run was started with.
    """
    with hold_folder(path, "trains", disk_error):
        _begin(path, recipe.to_yaml(), objective, resume)
        yield RunDirectory(path)


def _begin(path: Path, text: str, objective: str, resume: bool) -> None:
    frozen = path / RECIPE
    saved = any(path.glob("checkpoints/step-*")) or any(path.glob("warm-start/step-*"))
    if saved or _has_records(path):
        if not resume:
            raise RunError(f"{path} holds a run already.", "Go on with --resume, or choose another --out.")
        if not saved:
            raise RunError(
                f"{path} holds records of a run and no checkpoint to go on from.",
                "Put its checkpoints back, or start another run with another --out.",
            )
        changed = _changed_keys(frozen, text)
        if changed:
            shown = ", ".join(changed[:6]) + (" …" if len(changed) > 6 else "")
            raise RunError(
                f"The recipe differs from the one that {path} was started with, in {shown}.",
                "Resume with the same recipe and --set options, or start another run.",
            )
    write_text(frozen, text)
    write_text(path / OBJECTIVE, objective)


def _has_records(path: Path) -> bool:
    """Say whether there is anything to lose: what a start leaves that failed before its first checkpoint is not."""
    logs = (path / EVALUATIONS, path / EPISODES)
    if any(log.exists() and log.stat().st_size for log in logs):
        return True
    metrics = path / METRICS
    return metrics.exists() and b'"phase": "rl"' in metrics.read_bytes()


def _changed_keys(frozen: Path, text: str) -> list[str]:
    """Dotted keys in which the recipe of a run differs from ``text``.

    Raises:
        RunError: the run's recipe is damaged.
    """
    if not frozen.exists():
        return []
    try:
        data = read_yaml(frozen.read_text("utf-8"))
    except (ValueError, yaml.YAMLError):
        data = None
    if not isinstance(data, dict):
        raise RunError(
            f"{frozen} is damaged: it holds no recipe, so that nobody can say whether this one is the run's.",
            "Put it back from a copy; or, where you are sure, remove it and resume: it is written anew.",
        )
    with contextlib.suppress(pydantic.ValidationError):  # then keys have changed their names since
        data = plain(Recipe.model_validate(data))  # keys that are newer than the run have their defaults
    before, after = _leaves(data, ""), _leaves(read_yaml(text), "")
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    elsewhere = before.get("engine.kind") == after.get("engine.kind") == "remote"
    return sorted(changed - MAY_CHANGE - (WHERE_ENGINES_ARE if elsewhere else frozenset()))


def _leaves(value: Any, key: str) -> dict[str, Any]:
    """Dotted key → value; a list is one value."""
    if not isinstance(value, dict):
        return {key: value}
    return {
        k: v for name, item in value.items() for k, v in _leaves(item, f"{key}.{name}".strip(".")).items()
    }
