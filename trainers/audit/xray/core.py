"""Vocabulary of an X-ray of a set of tasks: tasks, answers that scripted agents give, and what the task's own judge says of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from turnwise.tasks.core import Json

WRONG = ("empty", "no-op", "garbage", "wrong")
_ALWAYS = 3
"""Different answers that have to be paid before a judge is said to pay every one."""
"""Agents whose answers no task may accept."""
HASHES = ("3", "11", "23", "42")
"""Seeds of hashes, each for a process of its own: an order of a set or a hash as a number is another one in each."""
AGAIN: Mapping[str, str] = {
    "again": "when it is asked again, in another order and process",
    "low": "with chance or the date",
    "high": "with chance or the date",
    **{f"hash {seed}": "from process to process (PYTHONHASHSEED)" for seed in HASHES},
}
"""Conditions under which a verdict has to stay what it was, and how it depends where it does not."""
PATIENT = ", patient"
"""The end of a condition's name where the judge's own time limits are many times longer."""
_SAME, _SLOW_S = 0.01, 0.25


class XTask(NamedTuple):
    """A task as somebody else wrote it.

    Attributes:
        place: its file and line, or its folder.
        gold: a right answer in the forms in which a judge may want it; empty where none is given.
        truth: the value that the judge compares with.
        core: a right answer in words without its derivation and marks.
        row: all columns.
        visible: texts that an agent may read beside the prompt, by their paths.
        hidden: texts of tests and solutions.
    """

    id: str
    place: str
    prompt: str
    gold: Sequence[str] = ()
    truth: Json = None
    row: Mapping[str, Json] = {}
    visible: Mapping[str, str] = {}
    hidden: Mapping[str, str] = {}
    core: str = ""


class Attempt(NamedTuple):
    """An answer, or for a task of files a script, and the agent that gives it."""

    agent: str
    text: str
    label: str = ""


class Verdict(NamedTuple):
    """A judge's answer to one attempt.

    Attributes:
        score: None where it said nothing.
        error: what it raised, or why it broke off.
        timeout: its time ran out.
        network: places that it wanted to reach.
        trace: checks that were reached, and what was raised on the way.
        log: what it printed.
        tests: outcomes of tests by their number, such as passed or skipped.
    """

    score: float | None
    error: str = ""
    timeout: bool = False
    network: Sequence[str] = ()
    installs: Sequence[str] = ()
    trace: Mapping[str, Any] | None = None
    log: str = ""
    tests: Mapping[str, int] = {}
    seconds: float = 0.0

    @property
    def said(self) -> str:
        """The verdict in a few words."""
        if self.timeout:
            return "no verdict in time"
        return self.error or ("no verdict" if self.score is None else f"{self.score:g}")


class Judged(NamedTuple):
    """An attempt under one of the conditions of a judge, and its verdict."""

    attempt: Attempt
    mode: str
    verdict: Verdict


@dataclass(frozen=True)
class ProbedTask:
    """A task and everything that was judged of it.

    Attributes:
        line: the score from which an answer counts as accepted.
        unjudged: why nothing could be judged.
        setup: how its set-up breaks.
        shown: where its answer is shown, as far as that was seen while it was judged.
        read: kinds of defect that are seen by reading alone, with what was read; None where reading tells nothing.
    """

    task: XTask
    judged: Sequence[Judged]
    line: float = 0.5
    unjudged: str = ""
    setup: str = ""
    shown: str = ""
    read: Mapping[str, str] | None = None

    def accepts(self, verdict: Verdict) -> bool:
        """Say if a verdict pays."""
        return verdict.score is not None and verdict.score >= self.line - 1e-9

    def of(self, *agents: str, mode: str = "plain") -> Iterator[Judged]:
        """Attempts of these agents with their verdicts."""
        return (one for one in self.judged if one.mode == mode and one.attempt.agent in agents)

    def paid(self, *agents: str, mode: str = "plain") -> Judged | None:
        """The first of these agents' attempts that was paid."""
        return next((one for one in self.of(*agents, mode=mode) if self.accepts(one.verdict)), None)

    @cached_property
    def gold(self) -> Judged | None:
        """The right answer in the form that pays most; None where there is none."""
        found = [*self.of("gold")]
        return max(
            found, key=lambda one: -math.inf if one.verdict.score is None else one.verdict.score, default=None
        )

    @cached_property
    def unsteady(self) -> tuple[Judged, Judged] | None:
        """Two verdicts on one answer that differ, also where the judge was given all the time that it wants."""
        pair = self.changing
        return None if pair is None or self.hurried else pair

    @cached_property
    def hurried(self) -> bool:
        """True if verdicts differ, and no longer where the judge's own time limits are longer: on a busy machine it was cut short."""
        if self.changing is None:
            return False
        before, _ = self.changing
        patient = [
            one.verdict
            for one in self.judged
            if one.mode.endswith(PATIENT) and one.attempt.text == before.attempt.text
        ]
        return bool(patient) and not any(self._differ(patient[0], one, "again") for one in patient)

    @property
    def in_doubt(self) -> tuple[Attempt, str] | None:
        """The answer and the condition under which its verdict changed, where one of the two took so long that a time limit may have ended it."""
        if self.changing is None:
            return None
        before, after = self.changing
        slow = max(before.verdict.seconds, after.verdict.seconds) >= _SLOW_S
        return (after.attempt, after.mode) if slow else None

    @cached_property
    def changing(self) -> tuple[Judged, Judged] | None:
        """Two verdicts on one answer that differ: the first one, and one asked for again or under another chance or date."""
        plain: dict[str, Judged] = {}
        for seen in self.judged:
            if seen.mode == "plain":
                plain.setdefault(seen.attempt.text, seen)
        for seen in self.judged:
            before = plain.get(seen.attempt.text)
            if (
                before is not None
                and seen.mode in AGAIN
                and self._differ(before.verdict, seen.verdict, seen.mode)
            ):
                return before, seen
        return None

    def _differ(self, first: Verdict, second: Verdict, mode: str) -> bool:
        """Say if two verdicts differ; one that broke off under a condition that we made says nothing."""
        if first.timeout or second.timeout:
            return False
        if first.score is None or second.score is None:
            return mode == "again" and (first.score is None) != (second.score is None)
        return abs(first.score - second.score) > _SAME * max(abs(self.line) * 2, 1.0)

    @cached_property
    def always(self) -> bool:
        """True if it pays whatever says anything; of an answer in several forms the plain one counts, and nothing at all need not be paid."""
        plain: dict[tuple[str, str], Judged] = {}
        for one in self.of(*WRONG):
            plain.setdefault((one.attempt.agent, one.attempt.label), one)
        nothing = plain.pop(("empty", ""), None)
        paid = nothing is not None and self.accepts(nothing.verdict)
        return len(plain) + paid >= _ALWAYS and all(self.accepts(one.verdict) for one in plain.values())


class Evidence(NamedTuple):
    """A defect of a task: what was seen, in the judge's or the task's own words."""

    seen: str
    severity: str = "defect"


class BrokenRow(NamedTuple):
    """A row or folder that is no task, and was left out."""

    place: str
    cause: str
    remedy: str


class XrayCost(NamedTuple):
    """The price of an X-ray."""

    tasks: int
    verdicts: int
    containers: int
    seconds: float

    def __str__(self) -> str:
        minutes = self.seconds / 60
        took = f"{self.seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min"
        tasks = "1 task" if self.tasks == 1 else f"{self.tasks} tasks"
        boxes = "1 sandbox" if self.containers == 1 else f"{self.containers} sandboxes"
        return f"{tasks}, about {self.verdicts:,} verdicts in {boxes}, about {took}"


@dataclass(frozen=True)
class TaskSet:
    """Tasks of one format, and how they are judged.

    Attributes:
        broken: what could not be read.
        total: rows or folders, the broken ones too.
        probe: tasks → what their judge says of every agent.
        cost: a guess before anything is run, for that many tasks.
        uses: the options of reading and judging that have an effect here, as they are given: `--columns`.
    """

    path: str
    form: str
    tasks: Sequence[XTask]
    broken: Sequence[BrokenRow]
    total: int
    probe: Callable[[Sequence[XTask]], Sequence[ProbedTask]]
    cost: Callable[[int], XrayCost]
    notes: Sequence[str] = ()
    uses: Sequence[str] = ()


@dataclass(frozen=True)
class ProbedSet:
    """Everything that was judged of a set, and the tasks of a set that it is held against."""

    source: TaskSet
    tasks: Sequence[ProbedTask]
    against: Sequence[XTask] = ()
    against_name: str = ""
    notes: Sequence[str] = field(default=())

    @cached_property
    def of_judged(self) -> Sequence[ProbedTask]:
        """Tasks that were judged."""
        return [one for one in self.tasks if not one.unjudged]


def quoted(text: str, most: int = 160) -> str:
    """A text on one line, cut.

    >>> quoted("a\\n  b")
    'a b'
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
