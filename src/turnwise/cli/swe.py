"""The command for bug-fixing tasks of one's own: swe add, swe build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.envs.swe.history import Budget, ReleaseRange
    from turnwise.tools.sandbox.core import Backend


def swe(
    action: str,
    /,
    *what: str,
    releases: bool = False,
    tasks: int = 0,
    since: str = "",
    until: str = "",
    pairs: int = 0,
    sdists: Path | None = None,
    out: Path | None = None,
    hard: Annotated[bool, Parameter(negative=())] = False,
    files: int = 1,
    seed: int = 0,
    workers: int = 2,
    minutes: float = 1e9,
    backend: str = "",
) -> VerbResult:
    """Make bug-fixing tasks (turnwise/SWE-v0) of packages: `swe add WHAT` lists a package, `swe build [NAME ...]` makes tasks.

    For example: `turnwise swe build --tasks 20`.

    Args:
        action: add or build.
        what: add: a YAML file, a folder of a repository, or a name of the package index (NAME or NAME==VERSION). build:
            names of packages that are listed, all if none is named; with --releases any names of the index, or those of
            envs/swe/releases.yaml.
        releases: build: what consecutive releases repaired, instead of bugs that are drawn.
        tasks: build: how many there shall be (500; with --releases as many as there are). add: how many are made to see what a package yields (4).
        since: With --releases: the first version.
        until: With --releases: the last version.
        pairs: With --releases: only the last so many pairs of each package.
        sdists: With --releases: a folder of source distributions, instead of the package index.
        out: build: the file of tasks; the cache's, which suites such as swe/built and swe/releases read, if none is named.
        hard: build: only bugs whose place no scripted localiser finds by the issue in five looks.
        files: build: in how many files a bug is, at least; more than one only with --hard.
        seed: build: another stream of bugs.
        workers: build: packages at a time.
        minutes: build: stop then; the same command goes on where it stopped.
        backend: bubblewrap or docker; the first that works here if none is named.
    """
    from turnwise.envs.swe.packages import tasks_file
    from turnwise.errors import NotFoundError, TurnwiseError
    from turnwise.tools.sandbox.registry import get_backend, isolated_backend

    if action not in ("add", "build"):
        raise NotFoundError("action", action, ("add", "build"))
    sandboxes = get_backend(backend) if backend else isolated_backend()
    if action == "add":
        if not what:
            raise TurnwiseError(
                "What shall be added?", "turnwise swe add my-packages.yaml (or a folder, or a name)"
            )
        return _add(sandboxes, what, tasks or 4)
    if files > 1 and not hard:
        raise TurnwiseError(
            f"Bugs of one changed expression are in one file, not in {files}.",
            f"Add --hard: turnwise swe build --hard --files {files}",
        )
    place = out or tasks_file("releases" if releases else "tasks")
    if releases:
        from turnwise.envs.swe.history import Budget, ReleaseRange, read_ranges, release_list

        ranges = [ReleaseRange(name, since, until, sdists, pairs) for name in what]
        if not what:
            ranges = [one._replace(pairs=pairs) for one in read_ranges(release_list())]
        return _releases(sandboxes, ranges, place, Budget(tasks, minutes))
    options = {"seed": seed, "workers": workers, "minutes": minutes, "hard": hard, "files": files}
    return _build(sandboxes, what, tasks or 500, place, options)


def _add(backend: Backend, what: tuple[str, ...], tries: int) -> VerbResult:
    from turnwise.envs.swe.add import add

    made = [one for each in what for one in add(backend, each, tries=tries)]
    rows: list[dict[str, Any]] = [
        {
            "package": one.package.name,
            "version": one.package.version,
            "source": one.package.source,
            "tests": one.tests,
            "suite_cpu": round(one.cpu, 2),
            "not_collected": len(one.uncollected),
            **one.tally._asdict(),
        }
        for one in made
    ]

    def show(console: SafeConsole) -> None:
        for row in rows:
            console.print(
                f"✓ {row['package']} {row['version']} ({row['source']}): {row['tests']} tests count, a run costs "
                f"{row['suite_cpu']} s of CPU; {row['kept']} of {row['tried']} bugs became tasks."
            )
            if row["not_collected"]:
                console.print(
                    f"  {row['not_collected']} files of tests cannot be imported here; `needs` may help."
                )
        console.print("Next: turnwise swe build " + " ".join(str(row["package"]) for row in rows))

    return VerbResult(rows, show)


def _build(
    backend: Backend, names: tuple[str, ...], tasks: int, out: Path, options: dict[str, Any]
) -> VerbResult:
    from turnwise.envs.swe.build import build
    from turnwise.envs.swe.packages import packages

    chosen = names or [name for name, package in packages().items() if package.file]
    built = build(backend, chosen, tasks, out, **options)

    def show(console: SafeConsole) -> None:
        took = f"{built.seconds:.0f} s, {built.cpu:.0f} s of CPU"
        console.print(f"{built.total} tasks of {len(chosen)} packages in {out} ({took})")

    return VerbResult(built.to_json(), show, code=0 if built.total >= tasks else 1)


def _releases(backend: Backend, ranges: Sequence[ReleaseRange], out: Path, budget: Budget) -> VerbResult:
    import sys

    from turnwise.envs.swe.history import build_releases

    def print_report(report: object) -> None:
        print(f"✓ {report}", file=sys.stderr, flush=True)

    reports = build_releases(backend, ranges, out, budget=budget, on_report=print_report)
    made = sum(report.tasks for report in reports)
    packages = len({report.package for report in reports if report.tasks})
    rows: list[Any] = [
        {"pair": [report.package, report.older, report.newer], "problem": report.problem, "fates": report.fates,
         "steps": [step._asdict() for step in report.steps]}
        for report in reports
    ]  # fmt: skip

    def show(console: SafeConsole) -> None:
        console.print(f"{made} tasks of {packages} packages, from {len(reports)} pairs of releases, in {out}")

    return VerbResult({"tasks": made, "packages": packages, "pairs": rows}, show, code=0 if made else 1)


VERBS: dict[str, Callable[..., VerbResult]] = {"swe": swe}
