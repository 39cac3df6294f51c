"""Tasks of packages' histories: pairs of consecutive releases, the newest of each package first, then the one before it.

One command for many packages: it goes on where it was interrupted, and neither a package nor a step of it may eat up the
time of the others. What became of each pair is written beside the file of tasks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout
from packaging.version import InvalidVersion, Version

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.pairs import PairReport, note, noted
from turnwise.envs.swe.releases import ReleasePair
from turnwise.envs.swe.sdists import Sdist, sdists_of, unpack
from turnwise.errors import InfraError, TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.tools.sandbox.core import Backend


class ReleaseRange(NamedTuple):
    """Releases of a package to look at: from ``since`` to ``until``, both included; all where they are empty.

    ``folder`` holds its source distributions; without it the package index is asked. Of many the last ``pairs`` are taken (0: all).
    """

    name: str
    since: str = ""
    until: str = ""
    folder: Path | None = None
    pairs: int = 0


class Budget(NamedTuple):
    """Limits of a search.

    It stops with so many ``tasks`` (0: never), after ``minutes`` of wall time. A pair gives ``most`` tasks at
    most, in ``seconds``.

    A package gets ``package_seconds`` in all, over all commands.
    """

    tasks: int = 0
    minutes: float = 1e9
    most: int = 10
    seconds: float = 180.0
    package_seconds: float = 1200.0


_NO_LIMIT = Budget()


def release_list() -> Path:
    """The packages that are looked at where none is named, each with the releases that were there when it was made."""
    return Path(__file__).parent / "releases.yaml"


def read_ranges(path: Path) -> list[ReleaseRange]:
    """Ranges from YAML: name → ``since``, ``until``.

    Raises:
        TurnwiseError: it is none.
    """
    rows: dict[str, dict[str, Any]] | None = read_yaml(path.read_text("utf-8"))
    if not isinstance(rows, dict):
        raise TurnwiseError(f"{path} does not map names of packages to since and until.", "See docs/swe.md.")
    return [
        ReleaseRange(str(name), str(row.get("since", "")), str(row.get("until", "")))
        for name, row in rows.items()
    ]


def build_releases(
    backend: Backend,
    ranges: Sequence[ReleaseRange],
    out: Path,
    *,
    budget: Budget = _NO_LIMIT,
    on_report: Callable[[PairReport], None] = lambda report: None,
) -> list[PairReport]:
    """Write the tasks of pairs of releases to ``out``; what became of each pair, of earlier commands as well.

    Pairs that were done before (noted in ``OUT.pairs``) are not done again. ``on_report`` hears of each pair that is done.

    Raises:
        InfraError: the package index cannot be asked.
        TurnwiseError: the only package has not two such releases, or another command writes to ``out``.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    notes, deadline = out.with_name(f"{out.name}.pairs"), time.monotonic() + 60 * budget.minutes
    try:
        with FileLock(f"{out}.lock", timeout=0):
            done = {(one.package, one.older, one.newer): one for one in noted(notes)}
            reports: list[PairReport] = []
            for name, older, newer in _plan(ranges, reports):
                key = name, str(older.version), str(newer.version)
                if key not in done and _may_go_on(budget, list(done.values()), name, deadline):
                    done[key] = _pair(backend, name, older, newer, out, budget)
                    note(notes, done[key])
                    on_report(done[key])
                if key in done:
                    reports.append(done[key])
            return reports
    except Timeout:
        raise TurnwiseError(
            f"Another command writes tasks to {out}.", "Wait for it, or name another --out."
        ) from None


def _may_go_on(budget: Budget, done: Sequence[PairReport], name: str, deadline: float) -> bool:
    spent = sum(report.seconds for report in done if report.package == name)
    has_enough = budget.tasks and sum(report.tasks for report in done) >= budget.tasks
    return not has_enough and spent < budget.package_seconds and time.monotonic() < deadline


def _plan(ranges: Sequence[ReleaseRange], reports: list[PairReport]) -> Iterator[tuple[str, Sdist, Sdist]]:
    """The pairs in the order in which they are done; what has none is reported, if there are others."""
    columns: list[list[tuple[str, Sdist, Sdist]]] = []
    for history in ranges:
        try:
            chosen = _chosen(history)
        except TurnwiseError as error:
            if len(ranges) == 1:
                raise
            reports.append(PairReport(history.name, history.since, history.until, error.cause))
            continue
        pairs = [(history.name, older, newer) for older, newer in pairwise(chosen)]
        columns.append(pairs[::-1][: history.pairs or None])
    for row in zip_longest(*columns):
        yield from (pair for pair in row if pair)


def _chosen(history: ReleaseRange) -> list[Sdist]:
    try:
        low, high = Version(history.since or "0"), Version(history.until or "99999")
    except InvalidVersion as error:
        raise TurnwiseError(f"{error}.", "Give versions such as 1.2.0.") from None
    there = sdists_of(history.name, folder=history.folder)
    chosen = [sdist for sdist in there if low <= sdist.version <= high]
    if len(chosen) < 2:
        last = ", ".join(str(sdist.version) for sdist in there[-8:])
        raise TurnwiseError(
            f"{history.name} has {len(chosen)} releases with source from {history.since or 'the first'} to "
            f"{history.until or 'the last'}; two are needed.",
            f"The last ones are {last}.",
        )
    return chosen


def _pair(backend: Backend, name: str, older: Sdist, newer: Sdist, out: Path, budget: Budget) -> PairReport:
    report = PairReport(name, str(older.version), str(newer.version))
    try:
        releases = report.timed("fetch", lambda: (unpack(name, older), unpack(name, newer)))
    except InfraError:
        raise
    except TurnwiseError as error:
        report.problem = error.cause
        return report
    pair = ReleasePair(backend, *releases, most=budget.most, seconds=budget.seconds)
    pair.report.steps += report.steps
    known = _tests_of(out)
    for made in pair.tasks():
        if (made.package, made.version, made.fail_to_pass, made.edits) not in known:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(made.to_json()) + "\n")
    return pair.report


def _tests_of(out: Path) -> set[tuple[object, ...]]:
    """Return the keys of the tasks in a file, and remove a last line that was cut short."""
    text = out.read_text("utf-8") if out.exists() else ""
    whole = text.split("\n")[:-1]
    out.write_text("".join(f"{line}\n" for line in whole), "utf-8")
    made = [Instance.from_json(json.loads(line)) for line in whole]
    return {(one.package, one.version, one.fail_to_pass, one.edits) for one in made}
