"""A healthy package, measured once: which of its tests pass each time, which lines they run, how long they take."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from turnwise.cache_folder import cache_folder
from turnwise.envs.swe.packages import Package, repository
from turnwise.envs.swe.suite import SuiteRun, run_suite, start
from turnwise.envs.swe.warm import SuiteJob, run_jobs
from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.core import Backend, SandboxImage
from turnwise.tools.sandbox.files import Layer

_RECIPE = 1  # raise when what is measured changes


class Baseline(NamedTuple):
    """``lines``: source file → line → tests that run it. ``seconds`` are of wall time, ``cpu`` of one run of the whole.

    ``uncollected`` are files of tests that cannot be imported here. ``image`` is the repository with what Python
    compiles of it. ``spent`` is what measuring took of the processor.
    """

    passing: frozenset[str]
    lines: dict[str, dict[int, frozenset[str]]]
    uncollected: frozenset[str]
    seconds: float
    cpu: float
    spent: float
    image: SandboxImage


def baseline_of(backend: Backend, package: Package, *, cover: bool = True) -> Baseline:
    """Measured, or as it was measured before with the same root (in the cache); ``lines`` only with ``cover``.

    Raises:
        TurnwiseError: the suite does not run, or nothing in it passes.
    """
    recipe = f"{_RECIPE} {package} {package.root} {sorted(repository(package).items())}" + " bare" * (
        not cover
    )
    key = hashlib.sha256(recipe.encode()).hexdigest()
    kept = cache_folder("swe", "baselines") / f"{package.name}-{key[:12]}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{kept}.lock"):
        if not kept.exists():
            base = measure(backend, package, cover=cover)
            kept.with_suffix(".part").write_bytes(_encoded(base))
            kept.with_suffix(".part").rename(kept)
            return base
        return _decoded(package, kept)._replace(spent=0.0)


def measure(backend: Backend, package: Package, *, repeats: int = 3, cover: bool = True) -> Baseline:
    """Run the healthy suite ``repeats`` times under different hash seeds, once with coverage, once in a warm interpreter.

    Raises:
        TurnwiseError: it does not run, or nothing in it passes.
    """
    runs: list[SuiteRun] = []
    for seed in range(repeats):
        with start(backend, package, repository(package)) as sandbox:
            runs.append(_whole(package, run_suite(sandbox, package, seconds=100, hash_seed=seed)))
    with start(backend, package, repository(package)) as sandbox:
        run_suite(sandbox, package, collect_only=True, canaries=False, seconds=60)
        sandbox.exec(["sh", "-c", "rm -rf /tmp/* /dev/shm/*"])
        image = sandbox.snapshot()
        if cover:
            runs.append(_whole(package, run_suite(sandbox, package, cover=True, canaries=False, seconds=110)))
    warm = _whole(package, run_jobs(backend, image, package, [SuiteJob(cpu=60.0)], hash_seed=repeats)[0])
    stable = frozenset[str].intersection(*(run.passing() for run in [*runs[:repeats], warm]))
    if not stable:
        raise TurnwiseError(f"No test of {package.name} passes.", "Leave it out with --packages.")
    lines = {
        path: {line: frozenset(tests) & stable for line, tests in rows.items()}
        for path, rows in runs[-1].lines.items()
        if package.is_source(path)
    }
    uncollected = frozenset(runs[0].uncollected)
    spent = sum(run.cpu for run in [*runs, warm])
    longest = max(run.seconds for run in runs[:repeats])
    return Baseline(stable, lines, uncollected, longest, warm.cpu, spent, image)


def _whole(package: Package, run: SuiteRun) -> SuiteRun:
    if not run.complete or run.tampered:
        why = run.tampered or ("it took too long" if run.timed_out else "it did not end")
        raise TurnwiseError(
            f"The suite of {package.name} does not run: {why}.", "Leave it out with --packages."
        )
    return run


def _encoded(base: Baseline) -> bytes:
    names = sorted(base.passing)
    at = {name: number for number, name in enumerate(names)}
    row = {
        "passing": names,
        "lines": {
            path: {line: sorted(at[test] for test in tests) for line, tests in rows.items()}
            for path, rows in base.lines.items()
        },
        "uncollected": sorted(base.uncollected),
        "times": [base.seconds, base.cpu, base.spent],
        "layers": [layer.blob.hex() for layer in base.image.layers[1:]],
    }
    return gzip.compress(json.dumps(row).encode(), 1)


def _decoded(package: Package, path: Path) -> Baseline:
    row: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    names = row["passing"]
    lines = {
        file: {int(line): frozenset(names[number] for number in tests) for line, tests in rows.items()}
        for file, rows in row["lines"].items()
    }
    layers = [Layer.of(dict(repository(package))), *(Layer(bytes.fromhex(blob)) for blob in row["layers"])]
    image = SandboxImage(package.root, tuple(layers))
    seconds, cpu, spent = row["times"]
    return Baseline(frozenset(names), lines, frozenset(row["uncollected"]), seconds, cpu, spent, image)
