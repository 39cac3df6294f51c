"""Records of a run directory, read back for the report (see :mod:`turnwise.trainers.report.page`)."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from turnwise.agents.evaluation.comparison import SuccessDifference, paired_difference, unpaired_difference
from turnwise.agents.evaluation.failures import Cause, bound, is_bounded
from turnwise.agents.evaluation.statistics import Estimate, Interval
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import Record
from turnwise.errors import TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.texts import lines_with_ends
from turnwise.trainers.report.played import PlayCounter, PlayedTasks

METRICS, EVALUATIONS, EPISODES = "metrics.jsonl", "evaluations.jsonl", "episodes.jsonl.zst"
RECIPE, OBJECTIVE, LIBRARIES = "recipe.yaml", "objective.txt", "libraries.log"
HACKS, PLANTED = "hack-meter.jsonl", "planted.jsonl.zst"
JUDGES = "judges.jsonl"


@dataclass(frozen=True)
class Metrics:
    """One update: its number, its phase, and what was measured."""

    update: int
    phase: str  # "warm_start" or "rl"
    values: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict[str, Interval])


@dataclass(frozen=True)
class EvaluationRow:
    """One evaluation of a checkpoint."""

    name: str  # "warm start", "after RL"
    mode: str  # "sampled", "greedy"
    split: str
    suite: str
    episodes: int
    tasks: int
    success: float
    success_interval: Interval
    mean_score: float
    turns: float
    outcomes: Mapping[str, int]
    results: Mapping[str, tuple[float, ...]]  # empty: cannot be compared in pairs
    causes: tuple[Cause, ...] = ()  # why episodes do not count, most frequent first

    @property
    def estimate(self) -> Estimate:
        """Success with its interval, and on how many tasks it rests."""
        return Estimate(self.success, self.success_interval, self.episodes, self.tasks)

    @property
    def excluded(self) -> int:
        return sum(n for outcome, n in self.outcomes.items() if outcome not in ("ok", "limit"))

    @property
    def bound(self) -> Interval | None:
        """Success as a bound, where too many episodes do not count for one figure."""
        found = bound(self.success, self.episodes - self.excluded, self.excluded)
        share = self.excluded / self.episodes if self.episodes else 0.0
        return found if is_bounded(self.success_interval, found, share) else None


@dataclass(frozen=True)
class ShownGroup:
    """Sampled episodes of one group, for the report."""

    update: int | None
    group: int | None
    records: tuple[Record, ...]

    @property
    def spread(self) -> float:
        """Standard deviation of the returns."""
        return statistics.pstdev(record.episode.trajectory.total_reward for record in self.records)


@dataclass(frozen=True)
class ReportedRun:
    """Everything that the report shows."""

    path: Path
    recipe: str
    objective: str
    metrics: tuple[Metrics, ...]
    evaluations: tuple[EvaluationRow, ...]
    samples: tuple[ShownGroup, ...]
    outcomes: Mapping[str, int]  # of the logged training episodes
    played: PlayedTasks | None  # which tasks they are of
    notes: tuple[str, ...]  # what was missing or torn

    def facts(self) -> dict[str, str]:
        """The recipe's top level, each entry in a word or two."""
        try:
            data = read_yaml(self.recipe)
        except yaml.YAMLError:
            return {}
        entries = data.items() if isinstance(data, dict) else ()
        said = {str(name).replace("_", " "): _in_short(value) for name, value in entries}
        return {name: value for name, value in said.items() if value}

    def phases(self) -> list[tuple[str, int]]:
        """The phases of the recipe, each with the number of updates before it; none where the recipe has none."""
        try:
            data = read_yaml(self.recipe)
        except yaml.YAMLError:
            return []
        given = data.get("phases") if isinstance(data, dict) else None
        found: list[tuple[str, int]] = []
        begin = 0
        for phase in given if isinstance(given, list) else ():
            match phase:
                case {"name": str(name), "updates": int(updates)}:
                    found.append((name[:40], begin))
                    begin += updates
                case _:
                    return []
        return found

    @property
    def trained(self) -> bool | None:
        """True if an update changed the weights; None where no update is logged, or none says so."""
        updates = [row for row in self.metrics if row.phase == "rl"]
        if not updates:
            return False if self.metrics else None
        return any(row.values.keys() & {"grad_norm", "entropy"} for row in updates)

    def pair(self) -> tuple[EvaluationRow, EvaluationRow] | None:
        """The first of :meth:`pairs`."""
        return next(iter(self.pairs()), None)

    def pairs(self) -> list[tuple[EvaluationRow, EvaluationRow]]:
        """The first and the last evaluation of each kind, where there are two; held-out and sampled ones first."""
        kinds = {(row.split, row.mode, row.suite): None for row in self.evaluations}
        found: list[tuple[EvaluationRow, EvaluationRow]] = []
        for split, mode, suite in sorted(kinds, key=lambda kind: (kind[0] != "test", kind[1] != "sampled")):
            rows = [r for r in self.evaluations if (r.split, r.mode, r.suite) == (split, mode, suite)]
            if len(rows) > 1:
                found.append((rows[0], rows[-1]))
        return found


def difference(before: EvaluationRow, after: EvaluationRow) -> SuccessDifference:
    """Two rows compared: in pairs where both say how each task went, else by their intervals."""
    if before.results.keys() & after.results.keys():
        return paired_difference(before.results, after.results)
    return unpaired_difference(before.estimate, after.estimate)


def read_run(path: Path, *, groups: int = 5) -> ReportedRun:
    """Read a run directory; what is missing is noted, what is damaged is an error.

    Raises:
        TurnwiseError: there is no such run, or a file is damaged before its end.
    """
    if not path.is_dir():
        raise TurnwiseError(f"There is no run directory {path}.", "Give the directory that `train` wrote.")
    files = (METRICS, EVALUATIONS, EPISODES, RECIPE)
    notes = [f"{name} is missing" for name in files if not (path / name).exists()]
    if len(notes) == len(files):
        raise TurnwiseError(
            f"{path} holds no run: neither {METRICS} nor {EVALUATIONS} nor {EPISODES}.",
            "Give the directory that `train` wrote, such as runs/quickstart.",
        )
    metrics, evaluations = read_metrics(path, notes), read_evaluations(path, notes)
    counter = PlayCounter()
    samples, outcomes = _sample(path / EPISODES, groups, notes, counter)
    recipe, objective = _text(path / RECIPE), _text(path / OBJECTIVE)
    return ReportedRun(
        path, recipe, objective, metrics, evaluations, samples, outcomes, counter.tables(), tuple(notes)
    )


def read_metrics(path: Path, notes: list[str]) -> tuple[Metrics, ...]:
    """Read what a run measured, update by update; a torn last line is noted.

    Raises:
        TurnwiseError: the file is damaged before its end.
    """
    return tuple(_metrics(row) for row in json_lines(path / METRICS, notes))


def read_evaluations(path: Path, notes: list[str]) -> tuple[EvaluationRow, ...]:
    """A run's evaluations; a torn last line is noted.

    Raises:
        TurnwiseError: the file is damaged before its end, or an evaluation is not whole.
    """
    return tuple(_evaluation(row, path) for row in json_lines(path / EVALUATIONS, notes))


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace") if path.exists() else ""


def json_lines(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; a torn last line is noted and left out.

    Raises:
        TurnwiseError: the file is damaged before its end.
    """
    lines = _lines(path)
    for number, line in enumerate(lines, 1):
        row, problem = _object(line)
        if row is not None:
            yield row
        elif number == len(lines) and not line.endswith(b"\n"):  # a crash tore the last write
            notes.append(f"the last line of {path.name} is torn and was left out")
        else:
            raise TurnwiseError(
                f"{path} is damaged at line {number}: {problem}.",
                f"`turnwise repair {path.parent}` cuts damaged lines out and keeps them beside the file.",
            )


def _lines(path: Path) -> list[bytes]:
    return list(lines_with_ends(path.read_bytes())) if path.exists() else []


def _object(line: bytes) -> tuple[dict[str, Any] | None, str]:
    """The JSON object on a line, or what is wrong with it."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, str(error)
    return (row, "") if isinstance(row, dict) else (None, "it is no JSON object")


def _metrics(row: Mapping[str, Any]) -> Metrics:
    intervals = {
        name.removesuffix("_interval"): Interval(*value)
        for name, value in row.items()
        if name.endswith("_interval") and isinstance(value, list) and len(value) == 2 and None not in value
    }
    values = {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, (int, float)) and name != "update" and math.isfinite(value)
    }
    return Metrics(int(row.get("update", 0)), str(row.get("phase", "rl")), values, intervals)


def _evaluation(row: Mapping[str, Any], path: Path) -> EvaluationRow:
    try:
        return EvaluationRow(
            name=str(row["name"]),
            mode=str(row.get("mode", "sampled")),
            split=str(row.get("split", "test")),
            suite=str(row["suite"]),
            episodes=int(row["episodes"]),
            tasks=int(row.get("tasks", row["episodes"])),
            success=float(row["success"]),
            success_interval=Interval(*row["success_interval"]),
            mean_score=float(row["mean_score"]),
            turns=float(row.get("turns", math.nan)),
            outcomes=row.get("outcomes", {}),
            results={task: tuple(runs) for task, runs in row.get("results", {}).items()},
            causes=tuple(Cause(**cause) for cause in row.get("causes", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TurnwiseError(
            f"An evaluation in {path / EVALUATIONS} cannot be read: {error!r}.",
            "Each line needs name, mode and the fields of Evaluation.to_json().",
        ) from None


def _sample(
    path: Path, wanted: int, notes: list[str], counter: PlayCounter
) -> tuple[tuple[ShownGroup, ...], Counter[str]]:
    """From updates spread over the run the group whose siblings differ most, as one pass sees them; ``counter`` sees all."""
    outcomes: Counter[str] = Counter()
    if not path.exists():
        return (), outcomes
    best: dict[int | None, ShownGroup] = {}
    open_groups: dict[tuple[int | None, int | None], list[Record]] = {}
    reader = LogReader(path)
    update: int | None = None
    for record in reader:
        outcomes[record.episode.outcome.value] += 1
        counter.see(record)
        if record.update != update:
            _keep_best(best, open_groups)
            update = record.update
        open_groups.setdefault((record.update, record.group), []).append(record)
    _keep_best(best, open_groups)
    if reader.dropped:
        notes.append(f"the torn end of {path.name} was left out")
    return tuple(_pick(list(best.values()), wanted)), outcomes


def _keep_best(
    best: dict[int | None, ShownGroup], groups: dict[tuple[int | None, int | None], list[Record]]
) -> None:
    for (update, group), records in groups.items():
        if group is None:  # episodes without siblings: a handful will do
            records = records[:4]
        sample = ShownGroup(update, group, tuple(records))
        if update not in best or sample.spread > best[update].spread:
            best[update] = sample
    groups.clear()


def _pick(samples: list[ShownGroup], wanted: int) -> list[ShownGroup]:
    if len(samples) <= wanted:
        return samples
    return [samples[round(i * (len(samples) - 1) / (wanted - 1))] for i in range(wanted)]


def _in_short(value: Any) -> str:
    if isinstance(value, dict):
        return str(value["name"]) if isinstance(value.get("name"), (str, int)) else ""
    if isinstance(value, list):
        parts = [_in_short(part) for part in value]
        return " + ".join(parts) if all(parts) and len(parts) <= 4 else ""
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else ""
