"""Draws bugs in a package and keeps those that some tests always show and the others never notice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

from turnwise.envs.swe.baseline import Baseline, baseline_of
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.issue import leaks, write_issue
from turnwise.envs.swe.localise import LOCALISERS, look_of
from turnwise.envs.swe.mutate import Bug, bugs_of
from turnwise.envs.swe.packages import Package, repository
from turnwise.envs.swe.prove import prove
from turnwise.envs.swe.suite import SuiteRun
from turnwise.envs.swe.warm import SuiteJob, run_jobs
from turnwise.tasks.core import derive_rng
from turnwise.tools.sandbox.core import Backend

_MOST_FAILING = 0.3  # of a suite: what breaks more is found by anybody
_PER_FUNCTION = 4
_LOOKS = 5  # in which a localiser must not find a hard bug
_BATCH, _BATCH_SECONDS = 24, 15.0  # bugs that are tried at once, and CPU seconds of their whole suites


class Tally(NamedTuple):
    """How many bugs had which fate, and the processor time (in seconds) that running them took.

    survived: no test fails; dull: too much fails, or it does not run to its end; unstable: not each time the same;
    vague: no failing test can be shown; leaking: the issue would show the repair; unproven: no failing test has a twin, or
    the true repair does not pass as it is judged; crowded: there are enough tasks of that function; found: a script that only
    reads the issue finds the place in five looks, and hard ones are asked for.
    """

    tried: int = 0
    survived: int = 0
    dull: int = 0
    unstable: int = 0
    vague: int = 0
    leaking: int = 0
    unproven: int = 0
    crowded: int = 0
    found: int = 0
    kept: int = 0
    cpu: float = 0.0


class Drawing:
    """Draws bugs of one package for as long as it is asked to; ``tally`` says what became of them.

    ``known`` are tasks that exist. Where it was interrupted, another stream of bugs begins. ``hard``: only bugs that no scripted
    localiser (:mod:`turnwise.envs.swe.localise`) finds in five looks.
    """

    def __init__(
        self,
        backend: Backend,
        package: Package,
        *,
        seed: int = 0,
        known: Sequence[Instance] = (),
        hard: bool = False,
    ) -> None:
        self._backend, self._package, self._hard = backend, package, hard
        self._taken = [one.where for one in known]
        self._edits = {one.edit for one in known}
        self.base = baseline_of(backend, package)
        self.tally = Tally(cpu=self.base.spent)
        rng = derive_rng("swe", package.name, package.version, seed, len(known))
        self._bugs = _candidates(package, self.base, rng)

    def draw(self, count: int, deadline: float = float("inf")) -> Iterator[Instance]:
        """At most so many more tasks; fewer where there are no more bugs, or hardly any is one.

        None is begun after ``deadline`` (of ``time.monotonic``).
        """
        kept, tried = 0, self.tally.tried
        most = max(min(_BATCH, int(_BATCH_SECONDS / self.base.cpu)), 4)
        while kept < count and self.tally.tried - tried < 12 * count + 20 and time.monotonic() < deadline:
            fresh = (bug for bug in self._bugs if self._is_wanted(bug))
            # A little more than is missing: about four of five bugs are kept.
            bugs = list(islice(fresh, min(most, 1 + 5 * (count - kept) // 4)))
            if not bugs:
                return
            for bug, failing, whole in self._stable(self._shown(bugs)):
                if kept == count or not self._is_wanted(bug):
                    self._count("crowded")
                    continue
                made, fate = self._instance(bug, failing, whole)
                self._count(fate)
                if made:
                    self._taken.append(bug.where)
                    self._edits.add(bug.edit)
                    kept += 1
                    yield made

    def _is_wanted(self, bug: Bug) -> bool:
        return self._taken.count(bug.where) < _PER_FUNCTION and bug.edit not in self._edits

    def _shown(self, bugs: Sequence[Bug]) -> list[Bug]:
        """Bugs that tests of their lines show."""
        shown: list[Bug] = []
        for bug, run in zip(bugs, self._run([self._job(bug, near=True) for bug in bugs], 0), strict=True):
            if not run.answered or run.timed_out or self._is_uncollected(run):
                self._count("dull")
            elif run.complete and not _failing(run):
                self._count("survived")
            else:
                shown.append(bug)
        return shown

    def _stable(self, bugs: Sequence[Bug]) -> list[tuple[Bug, frozenset[str], SuiteRun]]:
        """Bugs that break some of the suite, the tests that fail in two runs of two interpreters, the whole's run."""
        found: list[tuple[Bug, frozenset[str], SuiteRun]] = []
        for bug, whole in zip(bugs, self._run([self._job(bug) for bug in bugs], 1), strict=True):
            failing = self.base.passing - whole.passing()
            if not whole.complete or self._is_uncollected(whole) or len(failing) > self._most():
                self._count("dull")
            elif not failing:
                self._count("unstable")
            else:
                found.append((bug, failing, whole))
        again = self._run(
            [self._job(bug)._replace(only=failing, most_failing=0) for bug, failing, _ in found], 2
        )
        stable: list[tuple[Bug, frozenset[str], SuiteRun]] = []
        for one, run in zip(found, again, strict=True):
            if not run.complete or one[1] & run.passing():
                self._count("unstable")
            else:
                stable.append(one)
        return stable

    def _run(self, jobs: Sequence[SuiteJob], hash_seed: int) -> list[SuiteRun]:
        runs: list[SuiteRun] = []
        while len(runs) < len(jobs):
            runs += run_jobs(
                self._backend, self.base.image, self._package, jobs[len(runs) :], hash_seed=hash_seed
            )
        self.tally = self.tally._replace(cpu=self.tally.cpu + sum(run.cpu for run in runs))
        return runs

    def _job(self, bug: Bug, *, near: bool = False) -> SuiteJob:
        """A run of the tests that run the bug's lines, to the first that fails; or of the whole suite."""
        text = bug.edit.apply(repository(self._package)[bug.edit.path].decode())
        if not near:
            return SuiteJob({bug.edit.path: text}, cpu=3 + 3 * self.base.cpu, most_failing=self._most() + 1)
        rows = self.base.lines[bug.edit.path]
        tests = frozenset[str]().union(*(rows.get(line, ()) for line in range(bug.line, bug.last_line + 1)))
        return SuiteJob({bug.edit.path: text}, tests, cpu=2 + self.base.cpu, most_failing=1)

    def _most(self) -> int:
        return max(int(_MOST_FAILING * len(self.base.passing)), 3)

    def _is_uncollected(self, run: SuiteRun) -> bool:
        return bool(run.uncollected.keys() - self.base.uncollected)

    def _instance(self, bug: Bug, failing: frozenset[str], run: SuiteRun) -> tuple[Instance | None, str]:
        """The task of a bug, if it is one, and the bug's fate."""
        package, base = self._package, self.base
        removed = bug.where if bug.operator in ("remove_feature", "drop_method") else ""
        failures = {name: run.tests[name] for name in failing & set(run.tests)}
        issue = write_issue(package, repository(package), failures, removed=removed)
        if not issue:
            return None, "vague"
        if leaks(issue, [bug.edit.old]):
            return None, "leaking"
        passing = tuple(sorted(base.passing - failing))
        made = Instance(
            package=package.name,
            version=package.version,
            edits=(bug.edit,),
            operator=bug.operator,
            where=bug.where,
            issue=issue,
            fail_to_pass=tuple(sorted(failing)),
            pass_to_pass=passing,
            hidden=tuple(sorted({name.partition("::")[0] for name in failing})),
            seconds=round(base.seconds, 1),
            twins=(),
            probes=(),
            origin=None if package.is_own else package,
        )
        if self._hard and any(look_of(made, localiser) <= _LOOKS for localiser in LOCALISERS):
            return None, "found"
        lines = {name: failures[name].line if name in failures else 0 for name in failing}
        proven = prove(self._backend, base.image, made, lines)
        return proven, "kept" if proven else "unproven"

    def _count(self, fate: str) -> None:
        more = {"tried": self.tally.tried + 1, fate: getattr(self.tally, fate) + 1}
        self.tally = self.tally._replace(**more)


def _failing(run: SuiteRun) -> bool:
    return any(result.status in ("fail", "error", "skip", "") for result in run.tests.values())


def _candidates(package: Package, base: Baseline, rng: Random) -> Iterator[Bug]:
    """Bugs of all files, a file at random each time."""
    of: dict[str, Iterator[Bug]] = {}
    for path, rows in base.lines.items():
        lines = frozenset(
            line for line, tests in rows.items() if 0 < len(tests) <= _MOST_FAILING * len(base.passing)
        )
        if lines:
            of[path] = bugs_of(path, repository(package)[path].decode("utf-8", "replace"), rng, lines=lines)
    weights = {path: len(base.lines[path]) for path in of}
    while of:
        path = rng.choices(sorted(of), [weights[name] for name in sorted(of)])[0]
        bug = next(of[path], None)
        if bug is None:
            del of[path]
        else:
            yield bug
