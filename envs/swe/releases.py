"""Real bugs: what a release repaired. Tests of the newer release that fail on the older one's code, and the changes behind.

For each pair of releases that follow each other: the newer one's tests run once on both releases' code. Where none
fails on the older one by what the code does, that is all. Else the newer one is measured (its stable tests, what they reach), and
the difference is cut (:mod:`turnwise.envs.swe.cut`): each cut that some tests always fail without is a task.
``report`` says what each step cost and what became of everything; a pair that takes too long is left where it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from turnwise.envs.swe.baseline import Baseline, baseline_of
from turnwise.envs.swe.changelog import told_by
from turnwise.envs.swe.cut import Cutter, ReleaseCut, behaving, wrong_in
from turnwise.envs.swe.hunks import changes_between, edits_of, parts_of, undone
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.issue import leaks, write_issue
from turnwise.envs.swe.needs import needs_for
from turnwise.envs.swe.packages import holds_itself, repository
from turnwise.envs.swe.pairs import PairReport
from turnwise.envs.swe.prove import prove
from turnwise.envs.swe.sdists import Unpacked
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.suite import NO_ANSWER, SuiteRun, TestResult
from turnwise.envs.swe.twins import function_of
from turnwise.envs.swe.warm import SuiteJob, run_jobs
from turnwise.errors import TurnwiseError
from turnwise.texts import kept
from turnwise.tools.sandbox.core import Backend, SandboxImage

_MOST_PARTS, _MOST_FAILING = 300, 0.3
_MOST_EXAMPLES = 4  # test functions that an issue shows; a task has no other
_SLOW = 15.0  # CPU seconds of a suite that is too slow to be run hundreds of times


class ReleasePair:
    """Two releases that follow each other, and the tasks in between: at most ``most``, within ``seconds`` of wall time."""

    def __init__(
        self, backend: Backend, older: Unpacked, newer: Unpacked, *, most: int = 10, seconds: float = 180.0
    ) -> None:
        self._backend, self._older, self._newer = backend, older, newer
        self._most, self._deadline = most, time.monotonic() + seconds
        self.report = PairReport(newer.package.name, older.package.version, newer.package.version)
        self._package = newer.package

    def tasks(self) -> Iterator[Instance]:
        """Its tasks, one after the other; ``report`` says what became of everything."""
        try:
            yield from self._tasks()
        except TurnwiseError as error:
            self.report.problem = str(error).splitlines()[0]

    def _tasks(self) -> Iterator[Instance]:
        report = self.report
        before, after = _sources(self._older), _sources(self._newer)
        changes = changes_between(before, after)
        parts = parts_of(after, changes)
        if not parts:
            return
        if len(parts) > _MOST_PARTS:
            report.problem = f"{len(parts)} functions differ, which is more than {_MOST_PARTS}"
            return
        older = undone(after, changes)
        if not report.timed("both releases", lambda: self._differ(older)):
            return
        base = report.timed("measure", lambda: baseline_of(self._backend, self._package))
        failing = report.timed("older code", lambda: self._failing(base, older))
        cutter = Cutter(base, after, parts, lambda jobs: self._run(base.image, jobs), self._deadline)
        for cut in self._cuts(cutter, failing):
            report.count("cuts")
            if report.tasks >= self._most:
                report.count("cuts left: enough tasks")
                break
            if time.monotonic() > self._deadline:
                report.count("cuts left for want of time")
                break
            if made := report.timed("judges", lambda: self._task(base, after, cut)):  # noqa: B023 (done at once)
                yield made
        for fate, number in cutter.fates.items():
            report.count(fate, number)

    def _cuts(self, cutter: Cutter, failing: frozenset[str]) -> Iterator[ReleaseCut]:
        """Cuts that are small enough: of one function each, the smallest first; then those of several that explain the rest."""
        singles = self.report.timed("each function undone", cutter.singles)
        apart = self.report.timed(
            "changes of a function", lambda: [cut for single in singles for cut in cutter.apart(single)]
        )
        yield from sorted(filter(None, map(cutter.small, apart)), key=lambda cut: (cut.lines, cut.changes))
        more = cutter.together(failing.difference(*(cut.tests for cut in singles)))
        while cut := self.report.timed("fewest changes", lambda: next(more, None)):
            if small := cutter.small(cut):
                yield small

    def _differ(self, older: Mapping[str, str]) -> bool:
        """Say whether any test fails on the older code by behaviour, or cannot be collected.

        Then there may be tasks.

        What the newer release's tests lack is installed first.

        Raises:
            TurnwiseError: the suite does not run, or the sandbox holds the package.
        """
        for last in (False, False, True):
            if holds_itself(self._package):
                raise TurnwiseError(
                    f"The sandbox's root holds {self._package.name} itself.", "Take another package."
                )
            image = SandboxImage.of(dict(repository(self._package)), root=self._package.root)
            new, old = self._run(image, [SuiteJob(cpu=_SLOW), SuiteJob(older, cpu=2 * _SLOW)])
            if not new.complete or not new.passing():
                why = (
                    "it took too long"
                    if new.timed_out
                    else "it did not end"
                    if new.answered
                    else "nothing ran"
                )
                raise TurnwiseError(f"The newer release's tests do not run: {why}.", "Take another package.")
            details = [
                *new.uncollected.values(),
                *(one.detail for one in new.tests.values() if one.status == "error"),
            ]
            more = needs_for(details, self._package, self._newer.files)
            if last or not set(more) - set(self._package.needs) or not self._install(more):
                break
        base = Baseline(new.passing(), {}, frozenset(new.uncollected), 0.0, 0.0, 0.0, image)
        wrong = wrong_in(old, base)
        by_name = wrong.keys() - behaving(wrong).keys()
        self.report.count("tests", len(new.passing()))
        self.report.count("tests that lack a name", len(by_name))
        self.report.count(
            "files of tests not collected on older code", len(set(old.uncollected) - base.uncollected)
        )
        return not old.complete or len(by_name) < len(wrong) or bool(set(old.uncollected) - base.uncollected)

    def _install(self, more: Sequence[str]) -> bool:
        """Say whether there are such distributions; from now on they are needed."""
        from turnwise.tools.sandbox.roots import build_root

        wanted = self._package._replace(needs=tuple(sorted({*self._package.needs, *more})))
        try:
            build_root(wanted.root)
        except TurnwiseError:
            self.report.count("requirements that cannot be had", len(more))
            return False
        self._package = wanted
        return True

    def _failing(self, base: Baseline, older: Mapping[str, str]) -> frozenset[str]:
        """Tests that fail on the older code by what it does, each time."""
        runs = [
            self._run(base.image, [SuiteJob(older, cpu=10 + 3 * base.cpu)], hash_seed=seed)[0]
            for seed in (0, 1)
        ]
        first, second = (frozenset(behaving(wrong_in(run, base))) for run in runs)
        self.report.count("tests that fail on older code", len(first & second))
        self.report.count("unstable tests", len(first ^ second))
        return first & second

    def _task(self, base: Baseline, after: Mapping[str, str], cut: ReleaseCut) -> Instance | None:
        """The task of undoing these changes, if it is one."""
        broken, fate = undone(after, cut.changes), self.report.count
        (run,) = self._run(base.image, [SuiteJob(broken, cpu=10 + 3 * base.cpu)])
        wrong = {name for name in base.passing if name not in run.tests or run.tests[name].status != "pass"}
        shown = behaving({name: run.tests[name] for name in cut.tests & wrong_in(run, base).keys()})
        if not run.complete or not shown or len(wrong) > max(_MOST_FAILING * len(base.passing), 3):
            return fate("dull")
        again = [SuiteJob(broken, frozenset(shown), cpu=10 + base.cpu)]
        (second,) = self._run(base.image, again, hash_seed=1)
        shown = {name: result for name, result in shown.items() if name in wrong_in(second, base)}
        if not shown:
            return fate("unstable")
        if len({function_of(name) for name in shown}) > _MOST_EXAMPLES:
            return fate("more failing test functions than an issue shows")
        edits = edits_of(after, broken)
        where = _where(after[edits[0].path], edits[0].start)
        issue = self._issue(where, shown, [edit.old for edit in edits])
        if not issue:
            return fate("vague or leaking")
        made = Instance(
            package=self._package.name,
            version=self._package.version,
            edits=edits,
            operator="release",
            where=where,
            issue=issue,
            fail_to_pass=tuple(sorted(shown)),
            pass_to_pass=tuple(sorted(base.passing - wrong)),
            hidden=tuple(sorted({name.partition("::")[0] for name in wrong})),
            seconds=round(base.seconds, 1),
            twins=(),
            probes=(),
            origin=self._package,
        )
        proven = prove(self._backend, base.image, made, {name: result.line for name, result in shown.items()})
        fate("tasks" if proven else "unproven")
        return proven

    def _issue(self, where: str, shown: Mapping[str, TestResult], repair: Sequence[str]) -> str:
        """Write a user's issue, with words of the changelog where they fit.

        It is empty where it would show the repair.
        """
        older = self._package._replace(version=self.report.older)
        words = [*map(function_of, shown), *(result.detail for result in shown.values())]
        told = told_by(self._older, self._newer, where.rpartition(".")[2], words)
        for said in dict.fromkeys((told, "")):
            issue = write_issue(older, repository(self._package), shown, told=said, most=_MOST_EXAMPLES)
            if issue and not leaks(issue, repair):
                return issue
        return ""

    def _run(self, image: SandboxImage, jobs: Sequence[SuiteJob], *, hash_seed: int = 0) -> list[SuiteRun]:
        runs: list[SuiteRun] = []
        while len(runs) < len(jobs):
            if time.monotonic() > self._deadline + 60:
                return [*runs, *(NO_ANSWER for _ in jobs[len(runs) :])]
            left = jobs[len(runs) :]
            runs += run_jobs(self._backend, image, self._package, left, hash_seed=hash_seed)
        return runs


def _sources(release: Unpacked) -> dict[str, str]:
    """The package's own Python files."""
    package = release.package
    return {
        path: kept(data)
        for path, data in release.files.items()
        if path.endswith(".py") and package.is_source(path)
    }


def _where(text: str, start: int) -> str:
    source = SourceText(text)
    line = source.line_at(start)
    around = [
        node
        for node in source.nodes
        if getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", 0) or 0)
    ]
    return source.name_of(around[-1]) if around else ""
