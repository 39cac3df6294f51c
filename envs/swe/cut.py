"""Cuts the difference of two releases into small ones: each with the tests that fail when it alone is undone.

First each function that changed is undone by itself and the tests run that reach its lines. What fails on the older
code and is not explained so needs several changes: delta debugging against single tests finds the fewest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from turnwise.envs.swe.baseline import Baseline
from turnwise.envs.swe.hunks import Change, ChangedPart, all_parse, fewest, undone
from turnwise.envs.swe.suite import SuiteRun, TestResult
from turnwise.envs.swe.twins import function_of
from turnwise.envs.swe.warm import SuiteJob

_MOST_TESTS, _MOST_OUTSIDE, _MOST_SEARCHES, _MOST_LINES = 400, 8, 8, 150
_NAMELESS = re.compile(
    r"(ImportError|ModuleNotFoundError|NameError)\b|AttributeError: (module|type object|'\w+' object|.*has no attribute)"
    r"|TypeError: .*(unexpected keyword argument|positional arguments?|missing \d+ required|object is not callable)"
    r"|fixture '\w+' not found"
)

Run = Callable[[Sequence[SuiteJob]], list[SuiteRun]]


class ReleaseCut(NamedTuple):
    """Changes that some tests fail without."""

    changes: tuple[Change, ...]
    tests: frozenset[str]

    @property
    def lines(self) -> int:
        return sum(change.size for change in self.changes)


def wrong_in(run: SuiteRun, base: Baseline) -> dict[str, TestResult]:
    """The tests that pass with the newer release and fail in this run, which came to its end."""
    if not run.complete:
        return {}
    return {
        name: result
        for name, result in run.tests.items()
        if name in base.passing and result.status in ("fail", "error")
    }


def behaving(wrong: Mapping[str, TestResult]) -> dict[str, TestResult]:
    """Those that fail by what the code does, not because a name is missing."""
    return {name: result for name, result in wrong.items() if not _NAMELESS.search(result.detail)}


class Cutter:
    """The cuts of one pair of releases. ``fates`` counts what no cut was made of; ``deadline`` is of ``time.monotonic``."""

    def __init__(
        self,
        base: Baseline,
        newer: Mapping[str, str],
        parts: Sequence[ChangedPart],
        run: Run,
        deadline: float,
    ) -> None:
        self._base, self._newer, self._parts, self._run = base, newer, parts, run
        self._deadline = deadline
        self.fates: dict[str, int] = {}

    def singles(self) -> list[ReleaseCut]:
        """Cuts of one part each."""
        jobs: list[tuple[ChangedPart, SuiteJob]] = []
        outside = 0
        for part in self._parts:
            texts = undone(self._newer, part.changes)
            tests = self._reaching(part)
            outside += not part.where
            if part.where and not tests:
                self._count("changes that no test reaches")
            elif (
                not all_parse(texts)
                or (not part.where and outside > _MOST_OUTSIDE)
                or len(tests) > _MOST_TESTS
            ):
                self._count("changes not tried alone")
            else:
                jobs.append((part, SuiteJob(texts, tests, cpu=3 + 2 * self._base.cpu)))
        found: list[ReleaseCut] = []
        while jobs:
            if time.monotonic() > self._deadline:
                self._count("changes left for want of time", len(jobs))
                break
            batch, jobs = jobs[:16], jobs[16:]
            for (part, _), run in zip(batch, self._run([job for _, job in batch]), strict=True):
                if failing := self._failing(run):
                    found.append(ReleaseCut(part.changes, failing))
        return found

    def together(self, tests: frozenset[str]) -> Iterator[ReleaseCut]:
        """Cuts of several parts, which explain tests that fail on the older code."""
        left, searches = set(tests), 0
        while left:
            if searches == _MOST_SEARCHES or time.monotonic() > self._deadline:
                self._count("tests left for want of time", len(left))
                return
            test = min(left)
            searches += 1
            chosen = fewest(self._parts, lambda choices: self._show(choices, test))  # noqa: B023 (done at once)
            changes = tuple(chain.from_iterable(part.changes for part in chosen))
            (run,) = self._run([SuiteJob(undone(self._newer, changes), frozenset(left), cpu=10.0)])
            failing = self._failing(run)
            left -= {test} | failing
            if test in failing:
                yield ReleaseCut(changes, failing)
            else:
                self._count("tests that no few changes explain")

    def apart(self, cut: ReleaseCut) -> Iterator[ReleaseCut]:
        """A cut whose tests need different ones of its changes as several, each with the changes that its tests need."""
        left = set(cut.tests)
        if len(cut.changes) == 1 or len({function_of(test) for test in left}) == 1:
            yield cut
            return
        while left and time.monotonic() < self._deadline:
            test = min(left)
            chosen = fewest(cut.changes, lambda choices: self._show_changes(choices, test), 20)  # noqa: B023 (done at once)
            if len(chosen) == len(cut.changes):
                yield ReleaseCut(cut.changes, frozenset(left))
                return
            (run,) = self._run([SuiteJob(undone(self._newer, chosen), frozenset(left), cpu=10.0)])
            failing = self._failing(run)
            left -= {test} | failing
            if failing:
                yield ReleaseCut(chosen, failing)

    def small(self, cut: ReleaseCut) -> ReleaseCut | None:
        """A cut of at most 150 lines, or nothing; a larger one is searched for the changes that one test needs."""
        if cut.lines > _MOST_LINES and len(cut.changes) > 1 and time.monotonic() < self._deadline:
            test = min(cut.tests)
            chosen = fewest(cut.changes, lambda choices: self._show_changes(choices, test), 30)
            (run,) = self._run([SuiteJob(undone(self._newer, chosen), cut.tests, cpu=10.0)])
            cut = ReleaseCut(chosen, self._failing(run))
        if cut.lines > _MOST_LINES or not cut.tests:
            self._count("too large")
            return None
        return cut

    def _show(self, choices: Sequence[Sequence[ChangedPart]], test: str) -> list[bool]:
        return self._show_changes(
            [tuple(chain.from_iterable(part.changes for part in choice)) for choice in choices], test
        )

    def _show_changes(self, choices: Sequence[Sequence[Change]], test: str) -> list[bool]:
        """Say, choice by choice, whether a test fails by behaviour without these changes.

        What does not parse is not run.
        """
        texts = [undone(self._newer, choice) for choice in choices]
        good = [number for number, one in enumerate(texts) if all_parse(one)]
        runs = self._run([SuiteJob(texts[number], frozenset((test,)), cpu=5.0) for number in good])
        shown = {number for number, run in zip(good, runs, strict=True) if test in self._failing(run)}
        return [number in shown for number in range(len(choices))]

    def _failing(self, run: SuiteRun) -> frozenset[str]:
        if set(run.uncollected) - self._base.uncollected:
            return frozenset()
        return frozenset(behaving(wrong_in(run, self._base)))

    def _reaching(self, part: ChangedPart) -> frozenset[str]:
        rows = self._base.lines.get(part.path, {})
        return frozenset[str]().union(*(rows.get(line, ()) for line in part.lines))

    def _count(self, fate: str, number: int = 1) -> None:
        self.fates[fate] = self.fates.get(fate, 0) + number
