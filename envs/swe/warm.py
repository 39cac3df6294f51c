"""Many runs of a suite, each with some files changed, in children of one interpreter that has pytest loaded.

A tenth of a second instead of one for a small run. Only for making tasks: repairs are judged by :mod:`turnwise.envs.swe.reward`,
each run in a sandbox and an interpreter of its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.envs.swe.packages import Package
from turnwise.envs.swe.suite import LIMITS, NO_ANSWER, SuiteRun, ask_warden, read_program, read_run, spec_of
from turnwise.tools.sandbox.core import Backend, SandboxImage

_SECONDS = 75.0  # no run begins later than this; sandboxes end commands after 120
_LONGEST = 30.0  # of one run


class SuiteJob(NamedTuple):
    """A run of these tests (all if none is named) with files replaced by other texts.

    It is ended after ``cpu`` seconds of the processor, and stops when ``most_failing`` tests have failed (0: never).
    """

    changes: Mapping[str, str] = {}
    only: frozenset[str] = frozenset()
    cpu: float = 10.0
    most_failing: int = 0


def run_jobs(
    backend: Backend, image: SandboxImage, package: Package, jobs: Sequence[SuiteJob], *, hash_seed: int = 0
) -> list[SuiteRun]:
    """The runs of the first of these jobs, as many as there was time for, but one at least.

    Raises:
        SandboxError: the sandbox failed.
    """
    mark = secrets.token_hex(8)
    spec = {
        "mark": mark,
        "suite": read_program("suite"),
        "seconds": _SECONDS,
        "spec": spec_of(package, mark),
        "jobs": [_told(package, job, mark) for job in jobs],
    }
    with backend.start(image, LIMITS) as sandbox:
        answer = ask_warden(
            sandbox, "nursery", spec, files={}, seconds=_SECONDS + _LONGEST + 3, hash_seed=hash_seed
        )
    runs = _runs(answer["said"].splitlines(), mark) if answer else []
    return runs or [NO_ANSWER]


def _told(package: Package, job: SuiteJob, mark: str) -> dict[str, Any]:
    spec = spec_of(package, mark, job.only)
    cpu = int(job.cpu + 1)
    return {
        "changes": dict(job.changes),
        "only": spec["only"],
        "targets": spec["targets"],
        "most_failing": job.most_failing,
        "cpu": cpu,
        "seconds": min(5 + 4 * cpu, _LONGEST),
    }


def _runs(said: Sequence[str], mark: str) -> list[SuiteRun]:
    found: list[SuiteRun] = []
    start = 0
    for at, line in enumerate(said):
        ended = _end(line, mark)
        if ended is None:
            continue
        run = read_run([row for row in said[start:at] if row], mark)
        start = at + 1
        complete = run.complete and ended["ended"] == "exit"
        timed_out = ended["ended"] == "timeout"
        found.append(
            run._replace(complete=complete, timed_out=timed_out, seconds=ended["seconds"], cpu=ended["cpu"])
        )
    return found


def _end(line: str, mark: str) -> Mapping[str, Any] | None:
    if not line.startswith(mark + '{"kind": "job"'):
        return None
    return json.loads(line[len(mark) :])
