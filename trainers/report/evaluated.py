"""The report of an evaluation: its figures with their intervals, how episodes ended, and some of them to read."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.evaluate import Evaluation, summarize
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.episodes import LOG_NAME
from turnwise.agents.log.records import Record
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split
from turnwise.trainers.report.episodes import group_view, visible
from turnwise.trainers.report.html import report_page
from turnwise.trainers.report.records import ShownGroup

_REQUEST, _FIGURES = "asked.json", "evaluation.json"
_EXAMPLES = {"failed": 4, "solved": 2}
_OTHERS = 2
_AGAIN = "Evaluate anew, or put it back from a copy."


@dataclass(frozen=True)
class ReportedEvaluation:
    """Everything that the report of an evaluation shows.

    Attributes:
        asked: what it was asked to play, as words.
        figures: of the episodes that there are.
        examples: episodes of each end, those with the lowest score first where they failed.
        notes: what is missing.
    """

    path: Path
    asked: dict[str, str]
    figures: Evaluation
    examples: tuple[tuple[str, ShownGroup], ...]
    notes: tuple[str, ...]

    @property
    def ends(self) -> list[tuple[str, int, float]]:
        """Ways in which counting episodes ended, most frequent first, each with its number of episodes and their share."""
        total = sum(self.figures.ends.values()) or 1
        return [
            (end, n, n / total) for end, n in sorted(self.figures.ends.items(), key=lambda item: -item[1])
        ]

    @property
    def score(self) -> str:
        """The interval of the mean score, as people read it."""
        low, high = self.figures.mean_score_interval
        return f"{low:.3f} … {high:.3f}" if math.isfinite(high - low) else "unknown (one task)"


def is_evaluation(folder: Path) -> bool:
    """Say whether a folder is an evaluation's (``eval --out``) and no run's."""
    return any((folder / name).exists() for name in (_REQUEST, _FIGURES))


def read_evaluated(folder: Path) -> ReportedEvaluation:
    """Read an evaluation's folder; figures of one that is not finished are those of its episodes so far.

    Raises:
        TurnwiseError: no episode counts, or a file is damaged.
    """
    asked, figures = _json(folder / _REQUEST), _json(folder / _FIGURES)
    log = folder / LOG_NAME
    notes: list[str] = []
    if not log.exists():
        notes.append(f"{LOG_NAME} is missing, so no episode is shown")
    reader = LogReader(log)
    examples = _Examples()
    episodes = [examples.see(record).episode for record in (reader if log.exists() else ())]
    if reader.dropped:
        notes.append(f"the torn end of {LOG_NAME} was left out")
    if figures:
        evaluation = _finished(folder / _FIGURES, figures)
    else:
        notes.append("it is not finished: figures are of the episodes so far")
        evaluation = _so_far(folder / _REQUEST, asked, episodes)
    said = {
        visible(name.replace("_", " ")): visible(str(value))
        for name, value in asked.items()
        if value not in ("", None, {}, 0)
    }
    return ReportedEvaluation(folder, said, evaluation, examples.chosen(), tuple(notes))


def render_evaluation(evaluation: ReportedEvaluation) -> str:
    """The page's text."""
    return report_page(
        "evaluation.html.j2",
        e=evaluation.figures,
        report=evaluation,
        name=evaluation.path.resolve().name,
        examples=[(name, group_view(group)) for name, group in evaluation.examples],
    )


def _finished(path: Path, figures: Mapping[str, Json]) -> Evaluation:
    try:
        return Evaluation.from_json(figures)
    except (KeyError, TypeError, ValueError) as error:
        raise TurnwiseError(f"{path} is damaged: {error!r}.", _AGAIN) from None


def _so_far(path: Path, asked: Mapping[str, Json], episodes: Sequence[Episode]) -> Evaluation:
    suite, policy, k = str(asked.get("suite", "")), str(asked.get("policy", "")), asked.get("k", 1)
    try:
        split = Split(asked.get("split", "test"))
    except ValueError:
        raise TurnwiseError(f"{path} is damaged: it names no split.", _AGAIN) from None
    return summarize(episodes, suite=suite, policy=policy, k=k if isinstance(k, int) else 1, split=split)


class _Examples:
    """Picks episodes of each end while a log is read: the lowest scores of those that failed, the first of the others."""

    def __init__(self) -> None:
        self._found: dict[str, list[Record]] = {}
        self._seen: Counter[str] = Counter()

    def see(self, record: Record) -> Record:
        episode = record.episode
        end = str(episode.end or episode.outcome) if episode.outcome.counts else str(episode.outcome)
        kept = self._found.setdefault(end, [])
        kept.append(record)
        self._seen[end] += 1
        if end == "failed":
            kept.sort(key=lambda one: one.episode.score)
        del kept[_EXAMPLES.get(end, _OTHERS) :]
        return record

    def chosen(self) -> tuple[tuple[str, ShownGroup], ...]:
        order = sorted(self._found, key=lambda end: (end == "solved", -self._seen[end]))
        return tuple((end, _alone(record)) for end in order for record in self._found[end])


def _alone(record: Record) -> ShownGroup:
    records: Sequence[Record] = (record,)
    return ShownGroup(None, None, tuple(records))


def _json(path: Path) -> dict[str, Json]:
    """A file's object; nothing where it is not there.

    Raises:
        TurnwiseError: it is damaged.
    """
    if not path.exists():
        return {}
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TurnwiseError(f"{path} is damaged: {error}.", _AGAIN) from None
    if not isinstance(data, dict):
        raise TurnwiseError(f"{path} is damaged: it is no object.", _AGAIN)
    return data
