"""Many runs of a suite, each with one file changed, in children of one interpreter that has pytest loaded.

A tenth of a second instead of one for a small run. Only for making tasks: repairs are judged by :mod:`turnwise.envs.swe.grade`,
each run in a sandbox and an interpreter of its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.envs.swe.packages import Package
from turnwise.envs.swe.suite import LIMITS, NO_ANSWER, Run, ask_warden, read_program, read_run, spec_of
from turnwise.tools.sandbox.core import Backend, Image

_SECONDS = 75.0  # no run begins later than this; sandboxes end commands after 120
_LONGEST = 30.0  # of one run


class Job(NamedTuple):
    """A run of these tests (all if none is named) with file ``path`` replaced by ``text`` (none if it is empty).

    It is ended after ``cpu`` seconds of the processor, and stops when ``most_failing`` tests have failed (0: never).
    """

    path: str = ""
    text: str = ""
    only: frozenset[str] = frozenset()
    cpu: float = 10.0
    most_failing: int = 0


def run_jobs(
    backend: Backend, image: Image, package: Package, jobs: Sequence[Job], *, hash_seed: int = 0
) -> list[Run]:
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


def _told(package: Package, job: Job, mark: str) -> dict[str, Any]:
    spec = spec_of(package, mark, job.only)
    cpu = int(job.cpu + 1)
    return {
        "path_changed": job.path,
        "text": job.text,
        "only": spec["only"],
        "targets": spec["targets"],
        "most_failing": job.most_failing,
        "cpu": cpu,
        "seconds": min(5 + 4 * cpu, _LONGEST),
    }


def _runs(said: Sequence[str], mark: str) -> list[Run]:
    found: list[Run] = []
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
