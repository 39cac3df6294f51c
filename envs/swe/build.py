"""Make validated bug-fixing tasks: ``python -m turnwise.envs.swe.build --tasks 500``.

For each package: its suite is run several times (what is not stable is left out) and once with coverage; then bugs
are drawn on lines that tests run, and kept where some tests fail with them, again and again, and the rest pass.
What is done is written line by line, so that the command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.issue import leaks, write_issue
from turnwise.envs.swe.mutate import Bug, bugs_of
from turnwise.envs.swe.packages import Package, cache_folder, get_package, packages, repository
from turnwise.envs.swe.suite import Run, run_suite, start
from turnwise.errors import InfraError, TurnwiseError
from turnwise.tasks.core import derive_rng
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend, isolated_backend

_MOST_FAILING = 0.3  # of a suite: what breaks more is found by anybody
_PER_FUNCTION = 4


class Baseline(NamedTuple):
    """A healthy package: tests that pass each time, files of source → line → tests that run it, seconds of a run."""

    passing: frozenset[str]
    lines: dict[str, dict[int, frozenset[str]]]
    seconds: float


class Tally(NamedTuple):
    """What became of the bugs that were tried."""

    tried: int = 0
    survived: int = 0
    dull: int = 0
    unstable: int = 0
    leaking: int = 0
    kept: int = 0


def measure(backend: Backend, package: Package, *, repeats: int = 3) -> Baseline:
    """Run the healthy suite ``repeats`` times under different hash seeds, and once with coverage.

    Raises:
        TurnwiseError: it does not run, or nothing in it passes.
    """
    stable: frozenset[str] | None = None
    seconds = 0.0
    for seed in range(repeats):
        run = _run(backend, package, dict(repository(package)), hash_seed=seed)
        if not run.complete or run.tampered:
            why = run.tampered or ("it took too long" if run.timed_out else "it did not end")
            raise TurnwiseError(
                f"The suite of {package.name} does not run: {why}.", "Leave it out with --packages."
            )
        stable = run.passing() if stable is None else stable & run.passing()
        seconds = max(seconds, run.seconds)
    with start(backend, repository(package)) as sandbox:
        covered = run_suite(sandbox, package, cover=True, canaries=False, seconds=110)
    if not stable:
        raise TurnwiseError(f"No test of {package.name} passes.", "Leave it out with --packages.")
    lines = {
        path: {line: frozenset(tests) & stable for line, tests in rows.items()}
        for path, rows in covered.lines.items()
        if package.is_source(path)
    }
    return Baseline(stable, lines, seconds)


def make_tasks(
    backend: Backend, package: Package, count: int, *, seed: int = 0, known: Sequence[Instance] = ()
) -> Iterator[tuple[Instance | None, Tally]]:
    """Validated tasks of a package, each with the tally so far; None for a bug that was not kept."""
    base = measure(backend, package)
    rng = derive_rng("swe", package.name, package.version, seed, len(known))
    tally, taken = Tally(), [one.where for one in known]
    for bug in _candidates(package, base, rng):
        if tally.kept >= count or tally.tried >= 12 * count + 20:
            return
        if taken.count(bug.where) >= _PER_FUNCTION or any(one.edit == bug.edit for one in known):
            continue
        made, fate = _validate(backend, package, base, bug)
        tally = tally._replace(tried=tally.tried + 1, **{fate: getattr(tally, fate) + 1})
        if made:
            taken.append(bug.where)
        yield made, tally


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


def _validate(backend: Backend, package: Package, base: Baseline, bug: Bug) -> tuple[Instance | None, str]:
    """A task of a bug, or what is wrong with it."""
    files = dict(repository(package))
    files[bug.edit.path] = bug.edit.apply(files[bug.edit.path].decode()).encode()
    rows = base.lines[bug.edit.path]
    near = frozenset[str]().union(*(rows.get(line, ()) for line in range(bug.line, bug.last_line + 1)))
    if near:
        quick = _run(backend, package, files, only=near, limit=_limit(base))
        if quick.complete and near <= quick.passing():
            return None, "survived"
        if not quick.complete or quick.uncollected:
            return None, "dull"
    whole = _run(backend, package, files, limit=_limit(base), hash_seed=1)
    if not whole.complete or whole.uncollected or whole.tampered:
        return None, "dull"
    failing = base.passing - whole.passing()
    if not failing:
        return None, "survived"
    if len(failing) > max(_MOST_FAILING * len(base.passing), 3):
        return None, "dull"
    again = _run(backend, package, files, only=failing, limit=_limit(base), hash_seed=2)
    if not again.complete or failing & again.passing():
        return None, "unstable"
    instance = _instance(package, base, bug, failing, whole)
    return (instance, "kept") if instance else (None, "leaking")


def _instance(
    package: Package, base: Baseline, bug: Bug, failing: frozenset[str], run: Run
) -> Instance | None:
    removed = bug.where if bug.operator in ("remove_feature", "drop_method") else ""
    files = repository(package)
    issue = write_issue(
        package, files, {name: run.tests[name] for name in failing & set(run.tests)}, removed=removed
    )
    if leaks(issue, [bug.edit.old]):
        return None
    hidden = sorted({name.partition("::")[0] for name in failing})
    kept = tuple(sorted(base.passing - failing))
    made = (
        package.name,
        package.version,
        bug.edit,
        bug.operator,
        bug.where,
        issue,
        tuple(sorted(failing)),
        kept,
    )
    return Instance(*made, tuple(hidden), round(base.seconds, 1))


def _limit(base: Baseline) -> float:
    return 10 + 5 * base.seconds


def _run(
    backend: Backend,
    package: Package,
    files: dict[str, bytes],
    *,
    only: frozenset[str] = frozenset(),
    limit: float = 100.0,
    hash_seed: int = 0,
) -> Run:
    with start(backend, files) as sandbox:
        return run_suite(sandbox, package, only=only, seconds=min(limit, 110), hash_seed=hash_seed)


def build(
    backend: Backend, names: Sequence[str], tasks: int, out: Path, *, seed: int = 0, workers: int = 2
) -> int:
    """Write tasks of these packages to ``out``, as many of each as makes ``tasks``; how many there are then.

    What ``out`` holds already is kept and counted.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text("utf-8").splitlines(keepends=True) if out.exists() else []
    whole = [line for line in lines if line.endswith("\n")]  # a last line that was cut short is made again
    out.write_text("".join(whole), "utf-8")
    known = [Instance.from_json(json.loads(line)) for line in whole]
    since, each = time.monotonic(), -(-tasks // len(names))
    with out.open("a", encoding="utf-8") as file, ThreadPoolExecutor(workers) as pool:

        def one(name: str) -> int:
            mine = [instance for instance in known if instance.package == name]
            tally = Tally()
            try:
                for made, tally in make_tasks(  # noqa: B007 (its last value is told)
                    backend, get_package(name), each - len(mine), seed=seed, known=mine
                ):
                    if made:
                        file.write(json.dumps(made.to_json()) + "\n")
                        file.flush()
            except (TurnwiseError, InfraError) as error:
                print(f"– {name}: {error}", file=sys.stderr, flush=True)
            told = ", ".join(f"{count} {fate}" for fate, count in tally._asdict().items())
            print(f"✓ {name} {time.monotonic() - since:.0f} s: {told}", file=sys.stderr, flush=True)
            return tally.kept + len(mine)

        return sum(pool.map(one, names))


def tasks_file() -> Path:
    """Where built tasks are unless told otherwise."""
    return cache_folder() / "tasks.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        "python -m turnwise.envs.swe.build", description="Make bug-fixing tasks."
    )
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--packages", nargs="*", help="of envs/swe/packages.yaml; all if none is named")
    parser.add_argument("--out", type=Path, default=tasks_file())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--backend", choices=("bubblewrap", "docker"))
    asked = parser.parse_args(arguments)
    names = asked.packages or [name for name, package in packages().items() if package.file]
    backend = get_backend(asked.backend) if asked.backend else isolated_backend()
    since = time.monotonic()
    made = build(backend, names, asked.tasks, asked.out, seed=asked.seed, workers=asked.workers)
    spent = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    took = f"{time.monotonic() - since:.0f} s, {spent:.0f} s of CPU"
    print(f"{made} tasks of {len(names)} packages in {asked.out} ({took})")
    return 0 if made else 1


if __name__ == "__main__":
    raise SystemExit(main())
