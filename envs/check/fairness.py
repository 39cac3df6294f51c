"""``turnwise fairness``: whether a suite asks for the skill that it is named after.

A fair suite pays nothing for silence, for one word, or for words of the task without understanding (at most what its
environment declares as ``max_trivial_score``); a scan without a model gets little of what is called standard or hard;
better scripts get more; gold solves everything, also in other words where somebody has written rewordings.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.envs import baselines
from turnwise.envs.baselines import Script, interval
from turnwise.envs.check.rewording import Rewording, load_rewordings
from turnwise.envs.check.walks import Walk, walk
from turnwise.envs.core import AgentEnv
from turnwise.envs.registry import env_class, make, rivals_of, suite_tasks
from turnwise.envs.rivals import ONE_WORD, RivalMaker, of_script, one_word
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split, Suite, Task

SCAN_MOST = 0.2
"""Largest share of tasks that a scan without a model may solve in a suite called standard or hard."""
REWORDED_LEAST = 0.95
"""Of gold's mean score, what gold in other words must get."""
_Z = 1.96


class AgentResult(NamedTuple):
    """Result of an agent on the tasks of a suite: the share solved, the mean score and its standard error."""

    success: float
    score: float
    error: float


class RewordedResult(NamedTuple):
    """Result of gold in other words, and how many of its messages of words could be reworded."""

    success: float
    score: float
    error: float
    file: str
    said: int
    reworded: int


class Fairness(NamedTuple):
    """Fairness measurements of a suite."""

    suite: str
    tasks: int  # of the test split, that each agent played
    most_trivial: (
        float  # the most that an agent without understanding may solve, as the environment declares it
    )
    silence: AgentResult
    words: Mapping[str, AgentResult]  # agents that say one word
    keyword: AgentResult
    scan: AgentResult
    ladder: Mapping[str, AgentResult]  # from weak to strong; gold is the end
    reworded: RewordedResult | None
    seconds: float  # processor time

    @property
    def is_demanding(self) -> bool:
        """True if the suite's name (standard or hard) promises that a scan does not solve it."""
        return any(word in self.suite.partition("/")[2] for word in ("standard", "hard"))

    @property
    def shortcomings(self) -> list[str]:
        """Ways in which the suite is unfair, beyond chance (95 %); empty if it is fair."""
        found: list[str] = []
        trivial = {"silence": self.silence, **{repr(w): got for w, got in self.words.items()}}
        for name, got in {**trivial, "the keyword agent": self.keyword}.items():
            if self._least(got) > self.most_trivial:
                found.append(
                    f"{name} solves {got.success:.2f}, more than the limit of {self.most_trivial:.2f}"
                )
        if self.is_demanding and self._least(self.scan) > SCAN_MOST:
            found.append(
                f"the scan without a model solves {self.scan.success:.2f}, more than {SCAN_MOST:.2f}"
            )
        rungs = list(self.ladder.items())
        for (weak, low), (strong, high) in itertools.pairwise(rungs):
            if high.score + _Z * high.error < low.score - _Z * low.error:
                found.append(f"{strong} ({high.score:.2f}) gets less than {weak} ({low.score:.2f})")
        gold = self.ladder["gold"]
        if gold.success < 1.0:
            found.append(f"gold solves {gold.success:.2f}")
        if len(rungs) > 1 and rungs[0][1].score + _Z * rungs[0][1].error >= gold.score:
            found.append(f"{rungs[0][0]} is as good as gold")
        if self.reworded is not None and self.reworded.score < REWORDED_LEAST * gold.score:
            found.append(f"gold in other words gets {self.reworded.score:.2f} of {gold.score:.2f}")
        return found

    def _least(self, got: AgentResult) -> float:
        """The lower end of the interval of a share."""
        return interval(round(got.success * self.tasks), self.tasks)[0]

    def to_json(self) -> dict[str, Json]:
        return {
            **self._asdict(),
            "silence": self.silence._asdict(),
            "words": {word: got._asdict() for word, got in self.words.items()},
            "keyword": self.keyword._asdict(),
            "scan": self.scan._asdict(),
            "ladder": {name: got._asdict() for name, got in self.ladder.items()},
            "reworded": self.reworded and self.reworded._asdict(),
            "shortcomings": self.shortcomings,
        }

    @staticmethod
    def from_json(row: Mapping[str, Json]) -> Fairness:
        """The inverse of :meth:`to_json`; whatever else the row has is left out."""
        data: dict[str, Json] = {name: row[name] for name in Fairness._fields}
        for name in ("silence", "keyword", "scan"):
            data[name] = AgentResult(**data[name])
        for name in ("words", "ladder"):
            data[name] = {key: AgentResult(**got) for key, got in data[name].items()}
        if data["reworded"] is not None:
            data["reworded"] = RewordedResult(**data["reworded"])
        return Fairness(**data)


def fairness(suite: Suite, *, tasks: int = 60, reworded: Path | None = None) -> Fairness:
    """Play the agents of the table on the first ``tasks`` test tasks of a suite.

    Args:
        suite: which one.
        tasks: how many.
        reworded: a file of rewordings of gold's messages (:mod:`turnwise.envs.check.rewording`).

    Raises:
        TurnwiseError: there are no tasks to be played.
    """
    if tasks < 1:
        raise TurnwiseError(f"{tasks} tasks show nothing.", "Ask for 1 or more; 60 are usual.")
    started, cls, rivals = time.process_time(), env_class(suite.env), rivals_of(suite.env)
    env, chosen = make(suite.env), list(suite_tasks(suite, Split.TEST, tasks))
    if not all(map(env.knows_gold, chosen)):
        raise TurnwiseError(
            f"{suite.name} knows no solution of some of its tasks, which all else is measured by.",
            "`turnwise survey` plays what is known and the baselines.",
        )
    played: dict[str, AgentResult] = {}

    def result(name: str, maker: RivalMaker) -> AgentResult:
        return _played(env, chosen, name, maker, rivals.others)

    try:
        words = {word: result("one word", one_word(word)) for word in ONE_WORD}
        for name, maker in {**rivals.ladder, "gold": of_script(baselines.gold)}.items():
            played[name] = result(name, maker)
        other = None
        if reworded is not None:
            rewording = load_rewordings(reworded)
            got = result("gold", rewording.script)
            other = _reworded(got, rewording, reworded) if rewording.reworded else None
        return Fairness(
            suite.name,
            tasks=tasks,
            most_trivial=cls.max_trivial_scores.get(suite.name, cls.max_trivial_score),
            silence=result("null", of_script(baselines.null)),
            words=words,
            keyword=result("keyword", rivals.keyword),
            scan=result("scan", rivals.scan),
            ladder=played,
            reworded=other,
            seconds=round(time.process_time() - started, 1),
        )
    finally:
        env.close()


def table_row(row: Fairness) -> dict[str, str]:
    """A suite's row, for a terminal and for docs/fairness.md: shares solved, and mean scores where they differ."""
    best = max(row.words, key=lambda word: (row.words[word].success, row.words[word].score))
    other = row.reworded
    return {
        "suite": row.suite,
        "limit": f"{row.most_trivial:.2f}",
        "silence": _shown(row.silence),
        "one word": f"{_shown(row.words[best])} {best!r}",
        "keyword": _shown(row.keyword),
        "scan": _shown(row.scan),
        "ladder": ", ".join(f"{name} {_shown(got)}" for name, got in row.ladder.items()),
        "in other words": f"{_shown(other)}, {other.reworded} of {other.said} messages" if other else "",
    }


def _shown(got: AgentResult | RewordedResult) -> str:
    mean = "" if abs(got.score - got.success) < 0.005 else f" ({got.score:.2f})"
    return f"{got.success:.2f}{mean}"


def _reworded(got: AgentResult, rewording: Rewording, file: Path) -> RewordedResult:
    return RewordedResult(*got, f"{file.parent.name}/{file.name}", rewording.said, rewording.reworded)


def _played(
    env: AgentEnv[Any],
    tasks: Sequence[Task],
    name: str,
    maker: RivalMaker,
    others: Callable[[Script], Script] | None,
) -> AgentResult:
    walks: list[Walk] = []
    for n, task in enumerate(tasks):
        play = maker()
        walks.append(walk(env, task, name, seed=n, play=play, others=others and others(play)))
    scores = [one.score for one in walks]
    mean, n = sum(scores) / len(scores), len(scores)
    spread = sum((score - mean) ** 2 for score in scores) / max(1, n - 1)
    success = sum(one.success for one in walks) / n
    return AgentResult(success, mean, math.sqrt(spread / n))
