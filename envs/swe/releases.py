"""Real bugs: what a release repaired. Tests of the newer release that fail on the older one's code, and the changes behind.

For each pair of releases that follow each other: the newer one is measured (its stable tests), then its tests run on the
older one's code. Those that fail because a name is missing are about something new and are left out; for each other one,
delta debugging finds the fewest changes that make it fail when they are undone. Tests that the same changes
break are one task. ``steps`` says what each part cost and what became of everything.
"""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from turnwise.envs.swe.baseline import Baseline, baseline_of
from turnwise.envs.swe.hunks import Change, changes_between, edits_of, fewest, undone
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.issue import leaks, write_issue
from turnwise.envs.swe.layout import missing_modules
from turnwise.envs.swe.packages import repository
from turnwise.envs.swe.prove import prove
from turnwise.envs.swe.sdists import Unpacked
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.suite import SuiteRun, TestResult
from turnwise.envs.swe.twins import function_of
from turnwise.envs.swe.warm import SuiteJob, run_jobs
from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.core import Backend

_T = TypeVar("_T")
_MOST_CHANGES, _MOST_FUNCTIONS, _MOST_FAILING = 60, 12, 0.3
_NAMELESS = re.compile(
    r"(ImportError|ModuleNotFoundError|NameError)\b|AttributeError: (module|type object|'\w+' object|.*has no attribute)"
    r"|TypeError: .*(unexpected keyword argument|positional arguments?|missing \d+ required|object is not callable)"
    r"|fixture '\w+' not found"
)


class StepCost(NamedTuple):
    """What a part of the work took, in seconds of wall time and of this process's and its children's processor time."""

    name: str
    seconds: float
    cpu: float


@dataclass
class PairReport:
    """What became of a pair of releases. ``fates``: how many test functions, then tasks, had which."""

    package: str
    older: str
    newer: str
    problem: str = ""
    fates: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[StepCost] = field(default_factory=list[StepCost])

    def count(self, fate: str, number: int = 1) -> None:
        if number:
            self.fates[fate] = self.fates.get(fate, 0) + number

    def __str__(self) -> str:
        told = (
            self.problem
            or ", ".join(f"{number} {fate}" for fate, number in self.fates.items())
            or "nothing changed"
        )
        cost = ", ".join(f"{step.name} {step.seconds:.0f} s" for step in self.steps if step.seconds >= 0.5)
        return f"{self.package} {self.older} → {self.newer}: {told}" + (f" ({cost})" if cost else "")


class ReleasePair:
    """Two releases that follow each other, and the tasks in between."""

    def __init__(self, backend: Backend, older: Unpacked, newer: Unpacked) -> None:
        self._backend, self._older, self._newer = backend, older, newer
        self.report = PairReport(newer.package.name, older.package.version, newer.package.version)
        self._package = newer.package

    def tasks(self) -> Iterator[Instance]:
        """Its tasks, one after the other; ``report`` says what became of everything."""
        try:
            yield from self._tasks()
        except TurnwiseError as error:
            self.report.problem = str(error).splitlines()[0]

    def _tasks(self) -> Iterator[Instance]:
        base = self._timed("measure", self._measured)
        before, after = _sources(self._older), _sources(self._newer)
        changes = changes_between(before, after)
        if not changes:
            return
        failing = self._timed("older code", lambda: self._failing(base, undone(after, changes)))
        groups = self._timed("fewest changes", lambda: self._groups(base, after, changes, failing))
        for chosen, functions in groups.items():
            made = self._timed("judges", lambda: self._task(base, after, chosen, functions))  # noqa: B023 (done at once)
            if made:
                yield made

    def _measured(self) -> Baseline:
        """The newer release's stable tests; what its tests cannot import is installed once, by the module's name."""
        base = baseline_of(self._backend, self._package, cover=False)
        whole = self._run(base, [SuiteJob(cpu=60.0)])[0]
        if more := missing_modules(whole.uncollected.values(), self._package):
            wanted = self._package._replace(needs=(*self._package.needs, *more))
            try:
                found = baseline_of(self._backend, wanted, cover=False)
            except TurnwiseError:
                return base  # no such distribution: those tests stay out
            self._package = wanted
            return found
        return base

    def _failing(self, base: Baseline, texts: Mapping[str, str]) -> dict[str, TestResult]:
        """Tests of the newer release that fail on the older code by what it does, twice."""
        jobs = [SuiteJob(texts, cpu=10 + 3 * base.cpu)]
        first, second = self._run(base, jobs)[0], self._run(base, jobs, hash_seed=1)[0]
        wrong = {
            name: first.tests[name] for name in base.passing & first.tests.keys() if _is_wrong(first, name)
        }
        behaving = {name: result for name, result in wrong.items() if not _NAMELESS.search(result.detail)}
        stable = {name: result for name, result in behaving.items() if _is_wrong(second, name)}
        self.report.count(
            "missing names", len({function_of(name) for name in wrong.keys() - behaving.keys()})
        )
        self.report.count("unstable", len({function_of(name) for name in behaving.keys() - stable.keys()}))
        self.report.count("tests not collected", len(set(first.uncollected) - set(base.uncollected)))
        return stable

    def _groups(
        self,
        base: Baseline,
        after: Mapping[str, str],
        changes: Sequence[Change],
        failing: Mapping[str, TestResult],
    ) -> dict[tuple[Change, ...], list[str]]:
        """Test functions by the fewest changes that make them fail."""
        found: dict[tuple[Change, ...], list[str]] = {}
        functions = sorted({function_of(name) for name in failing})
        self.report.count("test functions", len(functions))
        for function in functions[:_MOST_FUNCTIONS]:

            def shows(choices: Sequence[Sequence[Change]], function: str = function) -> list[bool]:
                jobs = [
                    SuiteJob(undone(after, choice), frozenset((function,)), cpu=5.0) for choice in choices
                ]
                return [self._shows(base, run) for run in self._run(base, jobs)]

            known = next((chosen for chosen in found if shows([chosen])[0]), None)
            chosen = known or (fewest(changes, shows) if len(changes) <= _MOST_CHANGES else tuple(changes))
            found.setdefault(chosen, []).append(function)
        return found

    def _shows(self, base: Baseline, run: SuiteRun) -> bool:
        wrong = [
            result for name, result in run.tests.items() if name in base.passing and result.status != "pass"
        ]
        clean = run.complete and not set(run.uncollected) - base.uncollected
        return clean and bool(wrong) and not any(_NAMELESS.search(result.detail) for result in wrong)

    def _task(
        self, base: Baseline, after: Mapping[str, str], chosen: Sequence[Change], functions: Sequence[str]
    ) -> Instance | None:
        """The task of undoing these changes, if it is one."""
        broken = undone(after, chosen)
        (run,) = self._run(base, [SuiteJob(broken, cpu=10 + 3 * base.cpu)])
        wrong = {name: run.tests[name] for name in base.passing & run.tests.keys() if _is_wrong(run, name)}
        shown = {name: result for name, result in wrong.items() if not _NAMELESS.search(result.detail)}
        if not run.complete or not shown or len(wrong) > max(_MOST_FAILING * len(base.passing), 3):
            self.report.count("dull")
            return None
        older = self._package._replace(version=self.report.older)
        edits = edits_of(after, broken)
        where = _where(after[edits[0].path], edits[0].start)
        words = [*functions, *(result.detail for result in shown.values())]
        told = _told(self._older, self._newer, where.rpartition(".")[2], words)
        issue = write_issue(older, repository(self._package), shown, told=told)
        if issue and leaks(issue, [edit.old for edit in edits]):
            issue = write_issue(older, repository(self._package), shown, told="")
        if not issue or leaks(issue, [edit.old for edit in edits]):
            self.report.count("leaking" if issue else "vague")
            return None
        made = Instance(
            package=self._package.name,
            version=self._package.version,
            edits=edits,
            operator="release",
            where=where,
            issue=issue,
            fail_to_pass=tuple(sorted(shown)),
            pass_to_pass=tuple(sorted(base.passing - wrong.keys() & run.passing())),
            hidden=tuple(sorted({name.partition("::")[0] for name in wrong})),
            seconds=round(base.seconds, 1),
            twins=(),
            probes=(),
            origin=self._package,
        )
        proven = prove(self._backend, base.image, made, {name: result.line for name, result in shown.items()})
        self.report.count("tasks" if proven else "unproven")
        return proven

    def _run(self, base: Baseline, jobs: Sequence[SuiteJob], *, hash_seed: int = 0) -> list[SuiteRun]:
        runs: list[SuiteRun] = []
        while len(runs) < len(jobs):
            left = jobs[len(runs) :]
            runs += run_jobs(self._backend, base.image, self._package, left, hash_seed=hash_seed)
        return runs

    def _timed(self, name: str, work: Callable[[], _T]) -> _T:
        since, spent = time.monotonic(), _cpu()
        try:
            return work()
        finally:
            self.report.steps.append(StepCost(name, time.monotonic() - since, _cpu() - spent))


def _sources(release: Unpacked) -> dict[str, str]:
    """The package's own Python files."""
    package = release.package
    return {
        path: data.decode("utf-8", "replace")
        for path, data in release.files.items()
        if path.endswith(".py") and package.is_source(path)
    }


def _is_wrong(run: SuiteRun, name: str) -> bool:
    return run.complete and (name not in run.tests or run.tests[name].status in ("fail", "error"))


def _where(text: str, start: int) -> str:
    source = SourceText(text)
    line = source.line_at(start)
    around = [
        node
        for node in source.nodes
        if getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", 0) or 0)
    ]
    return source.name_of(around[-1]) if around else ""


def _told(older: Unpacked, newer: Unpacked, where: str, words: Sequence[str]) -> str:
    """What the newer release's changelog says anew about these words, without marks and numbers; empty where nothing fits.

    Two words must fit; the name of the function counts as one more.
    """
    seen = {word for text in words for word in _words(text)}
    best: tuple[int, str] = (1, "")
    for path, data in newer.files.items():
        if "/" in path or not re.match(r"(change|history|news)", path, re.IGNORECASE):
            continue
        known = set(older.files.get(path, b"").decode("utf-8", "replace").splitlines())
        for line in data.decode("utf-8", "replace").splitlines():
            shared = len(_words(line) & seen) + (len(where) > 3 and where in line)
            if line not in known and line.lstrip().startswith(("-", "*", "+")) and shared > best[0]:
                best = shared, line
    text = re.sub(r"\[?\(?#\d+\)?\]?(\([^)]*\))?|:\w+:`[^`]*`", "", best[1].lstrip("-*+ \t"))
    return re.sub(
        r"^(fix(e[sd])?|repair(s|ed)?)\b:?\s*", "", " ".join(text.split()), flags=re.IGNORECASE
    ).strip(" .:")


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]{4,}", text)} - {
        "test",
        "tests",
        "error",
        "assert",
        "with",
    }


def _cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
