"""Confirms twins of tests: each is run with the true repair, and kept where it fails and nothing else does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from random import Random

from turnwise.envs.swe.packages import Package, repository
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.suite import SuiteRun
from turnwise.envs.swe.twins import TextEdit, Twin, alterations, altered, find_function, function_of
from turnwise.envs.swe.warm import SuiteJob, run_jobs
from turnwise.tasks.core import derive_rng
from turnwise.texts import kept
from turnwise.tools.sandbox.core import Backend, SandboxImage

_TRIED, _KEPT = 5, 3  # alterations of a test that must pass
_WHOLE = 25.0  # CPU seconds of a whole suite with twins in it
_FUNCTIONS, _OTHERS = 24, 6  # functions that have twins: of those that fail with the bug, and of others


def make_twins(
    backend: Backend, image: SandboxImage, package: Package, lines: Mapping[str, int], others: Sequence[str]
) -> tuple[Twin, ...]:
    """Twins of tests that fail with a bug (``lines``: where in their files), and of a few ``others`` of their files.

    ``image`` is the repository with the true repair. A test whose twins cannot be made has none.

    Raises:
        SandboxError: the sandbox failed.
    """
    rng = derive_rng("swe twins", package.name, package.version, *sorted(lines))
    hints: dict[str, int] = {}
    for test, line in sorted(lines.items()):
        hints.setdefault(function_of(test), line)
    failing = _some(sorted(hints), _FUNCTIONS, rng)
    files = {function.partition("::")[0] for function in failing}
    spare = {function_of(test) for test in others if test.partition("::")[0] in files} - set(hints)
    chosen = {
        **{name: hints[name] for name in failing},
        **dict.fromkeys(_some(sorted(spare), _OTHERS, rng), 0),
    }
    found: list[Twin] = []
    for path in sorted(files):
        of = {name: line for name, line in chosen.items() if name.partition("::")[0] == path}
        for function, twins in _confirmed(backend, image, package, path, of, rng).items():
            twins.sort(key=lambda twin: not twin.is_plain)
            best = [twin for twin in twins if twin.is_plain == twins[0].is_plain]
            found += best[: _KEPT if function in hints else 1]
    return quiet_twins(backend, image, package, repository(package), found, others)


def quiet_twins(
    backend: Backend,
    image: SandboxImage,
    package: Package,
    files: Mapping[str, bytes],
    twins: Sequence[Twin],
    others: Sequence[str],
) -> tuple[Twin, ...]:
    """The twins beside which all ``others`` pass: a test that fails half-way may leave behind what others stumble over.

    A twin beside which the suite does not come to its end is left out as well. ``image`` holds ``files``, the repository with the true repair.

    Raises:
        SandboxError: the sandbox failed.
    """
    of: dict[str, list[Twin]] = {}
    for twin in twins:
        of.setdefault(twin.function, []).append(twin)
    most = max(map(len, of.values()), default=0)
    together = [[row[number] for row in of.values() if number < len(row)] for number in range(most)]
    suspects = {
        twin
        for group, quiet in zip(
            together, _are_quiet(backend, image, package, files, together, others), strict=True
        )
        if not quiet
        for twin in group
    }
    alone = [[twin] for twin in twins if twin in suspects]
    loud = {
        twin
        for (twin,), quiet in zip(
            alone, _are_quiet(backend, image, package, files, alone, others), strict=True
        )
        if not quiet
    }
    return tuple(twin for twin in twins if twin not in loud)


def _are_quiet(
    backend: Backend,
    image: SandboxImage,
    package: Package,
    files: Mapping[str, bytes],
    groups: Sequence[Sequence[Twin]],
    others: Sequence[str],
) -> list[bool]:
    """Of each group of twins that are run at once with the whole suite, whether all ``others`` pass but their own tests."""
    jobs, runs = list[SuiteJob](), list[SuiteRun]()
    for group in groups:
        texts = {
            path: altered(kept(files[path]), [twin for twin in group if twin.path == path])
            for path in {twin.path for twin in group}
        }
        jobs.append(SuiteJob(texts, cpu=_WHOLE))
    while len(runs) < len(jobs):
        runs += run_jobs(backend, image, package, jobs[len(runs) :])
    beside = [frozenset(twin.function for twin in group) for group in groups]
    return [
        run.complete and {test for test in others if function_of(test) not in own} <= run.passing()
        for own, run in zip(beside, runs, strict=True)
    ]


def _confirmed(
    backend: Backend, image: SandboxImage, package: Package, path: str, of: Mapping[str, int], rng: Random
) -> dict[str, list[Twin]]:
    """The twins of functions (with the lines to alter) of one file that fail when they are run."""
    text = kept(repository(package)[path])
    try:
        source = SourceText(text)
    except (SyntaxError, ValueError):
        return {}
    ways: dict[str, list[tuple[TextEdit, ...]]] = {}
    for function, line in of.items():
        if node := find_function(source, function):
            ways[function] = list(islice(alterations(source, node, rng, line), _TRIED))
    texts = [text]
    for number in range(max(map(len, ways.values()), default=0)):
        twins = [Twin(path, name, edits[number], ()) for name, edits in ways.items() if number < len(edits)]
        texts.append(altered(text, twins))
    names, runs = frozenset(ways), list[SuiteRun]()
    if not names:
        return {}
    while len(runs) < len(texts):
        left = [SuiteJob({path: text}, names) for text in texts[len(runs) :]]
        runs += run_jobs(backend, image, package, left)
    plain, found = _by_function(runs[0]), dict[str, list[Twin]]()
    for number, run in enumerate(runs[1:]):
        after = _by_function(run) if run.complete else {}
        for function, edits in ways.items():
            if number < len(edits) and (
                cases := _cases(plain.get(function, []), after.get(function, []), function in after)
            ):
                found.setdefault(function, []).append(Twin(path, function, edits[number], cases))
    return found


def _by_function(run: SuiteRun) -> dict[str, list[tuple[str, str]]]:
    """The tests of each function in order, with what each did."""
    found: dict[str, list[tuple[str, str]]] = {}
    for test, result in run.tests.items():
        found.setdefault(function_of(test), []).append((test, result.status))
    return found


def _cases(
    before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]], there: bool
) -> tuple[tuple[str, str, bool], ...]:
    """Pair a function's tests with those of its twin, and say which fail there.

    Nothing is returned where the twin proves nothing, or its tests do not always pass.
    """
    if not there or len(before) != len(after) or any(status != "pass" for _, status in before):
        return ()
    pairs = [(test, name, status) for (test, _), (name, status) in zip(before, after, strict=True)]
    if any(status not in ("pass", "fail") for _, _, status in pairs):
        return ()
    if not any(status == "fail" for _, _, status in pairs):
        return ()
    return tuple(
        (test, name, status == "fail") for test, name, status in pairs if test != name or status == "fail"
    )


def _some(names: Sequence[str], most: int, rng: Random) -> list[str]:
    return list(names) if len(names) <= most else sorted(rng.sample(names, most))
