"""Tasks of a package's history: every pair of consecutive releases, one after the other, going on where it was interrupted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from packaging.version import InvalidVersion, Version

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.releases import PairReport, ReleasePair, StepCost
from turnwise.envs.swe.sdists import Sdist, sdists_of, unpack
from turnwise.errors import InfraError, TurnwiseError
from turnwise.tools.sandbox.core import Backend


class ReleaseRange(NamedTuple):
    """Which releases of a package are looked at: versions from ``since`` to ``until``, both included; all where they are empty.

    ``folder`` holds its source distributions; without it the package index is asked.
    """

    name: str
    since: str = ""
    until: str = ""
    folder: Path | None = None


def build_releases(
    backend: Backend,
    history: ReleaseRange,
    out: Path,
    *,
    minutes: float = 1e9,
    say: Callable[[PairReport], None] = lambda report: None,
) -> list[PairReport]:
    """Write the tasks of each pair of releases to ``out``; what became of each pair.

    Pairs that were done before (noted in ``OUT.pairs``) are not done again. ``say`` hears of each pair that is done.

    Raises:
        InfraError: the package index cannot be asked.
        TurnwiseError: there are not two such releases, or another command writes to ``out``.
    """
    chosen = _chosen(history)
    out.parent.mkdir(parents=True, exist_ok=True)
    notes, deadline = out.with_name(f"{out.name}.pairs"), time.monotonic() + 60 * minutes
    try:
        with FileLock(f"{out}.lock", timeout=0):
            done = {(one.package, one.older, one.newer): one for one in _noted(notes)}
            reports: list[PairReport] = []
            for older, newer in pairwise(chosen):
                key = history.name, str(older.version), str(newer.version)
                if key not in done and time.monotonic() < deadline:
                    done[key] = _pair(backend, history.name, older, newer, out)
                    with notes.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(done[key])) + "\n")
                    say(done[key])
                if key in done:
                    reports.append(done[key])
            return reports
    except Timeout:
        raise TurnwiseError(
            f"Another command writes tasks to {out}.", "Wait for it, or name another --out."
        ) from None


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


def _pair(backend: Backend, name: str, older: Sdist, newer: Sdist, out: Path) -> PairReport:
    since = time.monotonic()
    try:
        pair = ReleasePair(backend, unpack(name, older), unpack(name, newer))
    except InfraError:
        raise
    except TurnwiseError as error:
        return PairReport(name, str(older.version), str(newer.version), error.cause)
    pair.report.steps.append(StepCost("fetch", time.monotonic() - since, 0.0))
    known = _tests_of(out)
    for made in pair.tasks():
        if (made.package, made.version, made.fail_to_pass) not in known:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(made.to_json()) + "\n")
    return pair.report


def _tests_of(out: Path) -> set[tuple[str, str, tuple[str, ...]]]:
    """What tasks there are already; a last line that was cut short is made again."""
    lines = out.read_text("utf-8").splitlines(keepends=True) if out.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    out.write_text("".join(whole), "utf-8")
    made = [Instance.from_json(json.loads(line)) for line in whole]
    return {(one.package, one.version, one.fail_to_pass) for one in made}


def _noted(notes: Path) -> list[PairReport]:
    lines = notes.read_text("utf-8").splitlines(keepends=True) if notes.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return [PairReport(**{**row, "steps": [StepCost(*step) for step in row["steps"]]}) for row in rows]
