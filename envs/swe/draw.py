"""Draws bugs in a package and keeps those that some tests always show and the others never notice."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

from turnwise.envs.swe.baseline import Baseline, baseline_of
from turnwise.envs.swe.cut import behaving
from turnwise.envs.swe.deep import deep_bugs
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.issue import leaks, write_issue
from turnwise.envs.swe.localise import LOCALISERS, LOOKS, look_of, traced_look
from turnwise.envs.swe.mutate import Bug, Edit, bugs_of
from turnwise.envs.swe.packages import Package, repository
from turnwise.envs.swe.prove import prove
from turnwise.envs.swe.suite import SuiteRun, TestResult
from turnwise.envs.swe.symptoms import write_symptoms
from turnwise.envs.swe.twins import function_of
from turnwise.envs.swe.warm import SuiteJob, run_jobs
from turnwise.tasks.core import derive_rng
from turnwise.texts import kept
from turnwise.tools.sandbox.core import Backend

_MOST_FAILING = 0.3  # of a suite: what breaks more is found by anybody
_PER_FUNCTION, _PER_KIND = 4, 3  # tasks of a package about one function; hard ones of one kind
_TRACED = 4  # failures whose tracebacks a localiser reads
_BATCH, _BATCH_SECONDS = 24, 15.0  # bugs that are tried at once, and CPU seconds of their whole suites


class Tally(NamedTuple):
    """Counts of bugs by their fate, and the processor time (in seconds) that running them took.

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

    ``known`` are tasks that exist. Where it was interrupted, another stream of bugs begins. ``hard``: bugs of several places,
    of missing cases, order and state (:mod:`turnwise.envs.swe.deep`) that no scripted localiser
    (:mod:`turnwise.envs.swe.localise`) finds in five looks, neither by the issue nor by a traceback; half of the issues show
    a failing test, the others symptoms only. ``files``: in how many a bug is, at least. ``kinds``: of hard bugs, if not all.
    """

    def __init__(
        self,
        backend: Backend,
        package: Package,
        *,
        seed: int = 0,
        known: Sequence[Instance] = (),
        hard: bool = False,
        files: int = 1,
        kinds: Collection[str] = (),
    ) -> None:
        self._backend, self._package, self._hard, self._files = backend, package, hard, files
        self._taken = [one.where for one in known]
        self._kinds = [one.operator for one in known]
        self._edits = {one.edits for one in known}
        self._first: dict[tuple[Edit, ...], frozenset[str]] = {}  # of each piece of a bug, a test that fails
        self.base = baseline_of(backend, package)
        self.tally = Tally(cpu=self.base.spent)
        self._rng = derive_rng("swe", package.name, package.version, seed, len(known))
        only = {"kinds": kinds} if kinds else {}
        make = functools.partial(_deep_candidates, **only) if hard else _candidates
        self._bugs = make(package, self.base, self._rng)

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
                    self._kinds.append(bug.operator)
                    self._edits.add(bug.edits)
                    kept += 1
                    yield made

    def _is_wanted(self, bug: Bug) -> bool:
        if len(bug.edits) < self._files or (self._hard and self._kinds.count(bug.operator) >= _PER_KIND):
            return False
        return self._taken.count(bug.where) < _PER_FUNCTION and bug.edits not in self._edits

    def _shown(self, bugs: Sequence[Bug]) -> list[Bug]:
        """Bugs that tests of their lines show, each piece by itself."""
        shown: list[Bug] = []
        jobs = {
            bug: [self._job(bug, piece, near=True) for piece in bug.pieces or (bug.edits,)] for bug in bugs
        }
        runs = iter(self._run([job for of in jobs.values() for job in of], 0))
        for bug, of in jobs.items():
            tried = [next(runs) for _ in of]
            if any(not run.answered or run.timed_out or self._is_uncollected(run) for run in tried):
                self._count("dull")
            elif any(run.complete and not _failing(run) for run in tried):
                self._count("survived")
            else:
                self._first[bug.edits] = frozenset().union(*(_failing(run)[:1] for run in tried))
                shown.append(bug)
        return shown

    def _stable(self, bugs: Sequence[Bug]) -> list[tuple[Bug, frozenset[str], SuiteRun]]:
        """Bugs that break some of the suite, the tests that fail in two runs of two interpreters, the whole's run."""
        found: list[tuple[Bug, frozenset[str], SuiteRun]] = []
        for bug, whole in zip(bugs, self._run([self._job(bug, bug.edits) for bug in bugs], 1), strict=True):
            failing = self.base.passing - whole.passing()
            if not whole.complete or self._is_uncollected(whole) or len(failing) > self._most():
                self._count("dull")
            elif not failing:
                self._count("unstable")
            else:
                found.append((bug, failing, whole))
        again = self._run(
            [self._job(bug, bug.edits)._replace(only=failing, most_failing=0) for bug, failing, _ in found], 2
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

    def _job(self, bug: Bug, edits: Sequence[Edit], *, near: bool = False) -> SuiteJob:
        """A run with these edits of the tests that run the bug's lines, to the first that fails; or of the whole suite."""
        files = repository(self._package)
        texts = {edit.path: edit.apply(kept(files[edit.path])) for edit in edits}
        if not near:
            return SuiteJob(texts, cpu=3 + 3 * self.base.cpu, most_failing=self._most() + 1)
        tests = frozenset[str]().union(
            *(
                self.base.lines.get(span.path, {}).get(line, ())
                for span in bug.spans
                for line in range(span.first, span.last + 1)
            )
        )
        return SuiteJob(texts, tests, cpu=2 + self.base.cpu, most_failing=1)

    def _most(self) -> int:
        return max(int(_MOST_FAILING * len(self.base.passing)), 3)

    def _is_uncollected(self, run: SuiteRun) -> bool:
        return bool(run.uncollected.keys() - self.base.uncollected)

    def _instance(self, bug: Bug, failing: frozenset[str], run: SuiteRun) -> tuple[Instance | None, str]:
        """The task of a bug, if it is one, and the bug's fate."""
        package, base = self._package, self.base
        removed = bug.where if bug.operator in ("remove_feature", "drop_method") else ""
        failures = {name: run.tests[name] for name in failing & set(run.tests)}
        issue = self._issue(bug, failures, removed)
        if not issue:
            return None, "vague"
        if leaks(issue, [edit.old for edit in bug.edits]):
            return None, "leaking"
        passing = tuple(sorted(base.passing - failing))
        made = Instance(
            package=package.name,
            version=package.version,
            edits=bug.edits,
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
        if self._hard and _is_found(made, failures):
            return None, "found"
        lines = {name: failures[name].line if name in failures else 0 for name in failing}
        proven = prove(self._backend, base.image, made, lines)
        return proven, "kept" if proven else "unproven"

    def _issue(self, bug: Bug, failures: Mapping[str, TestResult], removed: str) -> str:
        """Write a user's issue: with a failing test, or of a hard bug perhaps by its symptoms only."""
        first, files = self._first[bug.edits], repository(self._package)
        if len(bug.pieces) > 1:  # of which nobody could know the second if the issue showed the first
            if len({function_of(name) for name in first & failures.keys()}) < len(bug.pieces):
                return ""
            told = write_issue(self._package, files, failures, most=len(bug.pieces), first=first)
            return told if told.count("```python") == len(bug.pieces) else ""
        shown = write_issue(self._package, files, failures, removed=removed)
        if not self._hard or self._rng.random() < 0.5:
            return shown
        return write_symptoms(self._package, failures) or shown

    def _count(self, fate: str) -> None:
        more = {"tried": self.tally.tried + 1, fate: getattr(self.tally, fate) + 1}
        self.tally = self.tally._replace(**more)


def _failing(run: SuiteRun) -> list[str]:
    return [name for name, result in run.tests.items() if result.status in ("fail", "error", "skip", "")]


def _is_found(task: Instance, failures: Mapping[str, TestResult]) -> bool:
    """Say whether a script finds the bug in five looks.

    It goes by a name that is missing, the issue, or a traceback of a plain failure.
    """
    if len(behaving(failures)) < len(failures):
        return True
    plain = sorted(failures.values(), key=lambda result: len(result.detail))[:_TRACED]
    return any(look_of(task, localiser) <= LOOKS for localiser in LOCALISERS) or any(
        traced_look(task, result.frames) <= LOOKS for result in plain
    )


def _deep_candidates(
    package: Package, base: Baseline, rng: Random, **kinds: Collection[str]
) -> Iterator[Bug]:
    """Bugs of several places; no test's own names change their meaning."""
    files = repository(package)
    texts = {
        path: kept(data) for path, data in files.items() if path.endswith(".py") and package.is_source(path)
    }
    tests = " ".join(kept(data) for path, data in files.items() if package.is_test(path))
    lines = {path: rows for path, rows in base.lines.items() if path in texts}
    yield from deep_bugs(texts, lines, rng, used=frozenset(re.findall(r"[A-Za-z_]\w+", tests)), **kinds)


def _candidates(package: Package, base: Baseline, rng: Random) -> Iterator[Bug]:
    """Bugs of all files, a file at random each time."""
    of: dict[str, Iterator[Bug]] = {}
    for path, rows in base.lines.items():
        lines = frozenset(
            line for line, tests in rows.items() if 0 < len(tests) <= _MOST_FAILING * len(base.passing)
        )
        if lines:
            of[path] = bugs_of(path, kept(repository(package)[path]), rng, lines=lines)
    weights = {path: len(base.lines[path]) for path in of}
    while of:
        path = rng.choices(sorted(of), [weights[name] for name in sorted(of)])[0]
        bug = next(of[path], None)
        if bug is None:
            del of[path]
        else:
            yield bug
