"""From what is named on a command line to the subjects of audits: evaluations by task, logs by task, records of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.episodes import LOG_NAME
from turnwise.agents.log.records import Record
from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.alike import no_measure, played_otherwise, refuse
from turnwise.trainers.compare.candidates import Contender
from turnwise.trainers.compare.sources import read_contender
from turnwise.trainers.report.records import EPISODES


class EvaluatedSide(NamedTuple):
    """One evaluation: each task's 1.0 or 0.0 for every counting episode."""

    label: str
    results: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class EvaluatedSides:
    """Evaluations on the same suite and split, the start first."""

    measure: str
    sides: tuple[EvaluatedSide, ...]

    @property
    def start(self) -> EvaluatedSide:
        return self.sides[0]

    def others(self, wanted: str) -> tuple[EvaluatedSide, ...]:
        """The evaluations after the first, of which an audit needs one.

        Raises:
            TurnwiseError: there is none.
        """
        if len(self.sides) < 2:
            raise TurnwiseError(
                f"{self.start.label} is one evaluation, and {wanted} needs a start to set it against.",
                "Name the evaluation of the policy that it started from first: `turnwise audit eval START AFTER`.",
            )
        return self.sides[1:]


class LoggedGroup(NamedTuple):
    """The counting episodes of one task: of an evaluation, or of one group of an update."""

    task: str
    records: tuple[Record, ...]

    @property
    def episodes(self) -> tuple[Episode, ...]:
        return tuple(record.episode for record in self.records)

    @property
    def solved(self) -> int:
        return sum(record.episode.success for record in self.records)


@dataclass(frozen=True)
class LoggedGroups:
    """An episode log by task."""

    label: str
    groups: tuple[LoggedGroup, ...]

    @property
    def episodes(self) -> list[Episode]:
        return [episode for group in self.groups for episode in group.episodes]

    def of(self, runs: int, wanted: str) -> list[LoggedGroup]:
        """The groups of at least so many episodes.

        Raises:
            TurnwiseError: there is none.
        """
        found = [group for group in self.groups if len(group.records) >= runs]
        if not found:
            most = max((len(group.records) for group in self.groups), default=0)
            raise TurnwiseError(
                f"{self.label} has at most {most} counting episodes of a task, and {wanted} needs {runs}.",
                f"Play each task more often: `turnwise eval SUITE --policy … --k {max(runs, 8)} --out FOLDER`.",
            )
        return found


def read_sides(named: Sequence[str], *, allow_unlike: bool = False) -> EvaluatedSides:
    """Evaluations, checkpoints or runs, as ``turnwise compare`` reads them; a run alone is its own start and end.

    Raises:
        TurnwiseError: one is not there or has no results by task, or unlike would be set against unlike.
    """
    if not named:
        raise TurnwiseError(
            "No evaluation is named.", "`turnwise audit eval START AFTER`, folders of `eval --out`."
        )
    contenders = [read_contender(path) for path in named]
    for side in contenders:
        if len(side.members) != 1:
            raise TurnwiseError(
                f"{side.label} is a group of {len(side.members)} runs, and a curve over k is of one policy.",
                "Name one run, checkpoint or evaluation; `turnwise compare` sets groups against each other.",
            )
    first = contenders[0]
    shared = [m for m in first.measures if all(side.evaluations(m) for side in contenders)]
    if not shared:
        other = next((side for side in contenders[1:] if side.measures), first)
        raise TurnwiseError(
            f"Nothing is shared: {no_measure(first, other)}.",
            "Evaluate all on the same suite and split, alike.",
        )
    measure = shared[0]
    unlike = played_otherwise(measure, contenders)
    if unlike and not allow_unlike:
        raise refuse(unlike)
    its = [_side(contender, contender.evaluations(measure)[0].results) for contender in contenders]
    before = first.evaluations(measure)[0].before
    if len(its) == 1 and before is not None:
        its.insert(0, _side(first, before.results, " before"))
    return EvaluatedSides(str(measure), tuple(its))


def _side(contender: Contender, results: Mapping[str, tuple[float, ...]], what: str = "") -> EvaluatedSide:
    if not results:
        raise TurnwiseError(
            f"{contender.label}{what} has no results by task.",
            "Evaluate again with `turnwise eval … --out FOLDER`, which records them.",
        )
    return EvaluatedSide(f"{contender.label}{what}", results)


def read_log(path: Path) -> LoggedGroups:
    """An episode log by task; a training log by update and group.

    Raises:
        TurnwiseError: there is none, it is damaged, or no episode counts.
    """
    log = path / LOG_NAME if path.is_dir() else path
    found: dict[tuple[int | None, int | None, str], list[Record]] = {}
    for record in LogReader(log):
        if record.episode.outcome.counts and record.episode.trajectory.turns:
            group = None if record.update is None else record.group
            found.setdefault((record.update, group, record.episode.task.id), []).append(record)
    if not found:
        raise TurnwiseError(
            f"{log} has no episode that counts.", "Play some: `turnwise eval … --out FOLDER`."
        )
    groups = tuple(LoggedGroup(task, tuple(records)) for (_, _, task), records in found.items())
    return LoggedGroups(str(path), groups)


def log_of_run(path: Path) -> Path:
    """The episode log in a run's folder."""
    return path / EPISODES
