"""Judges a task in a container that the agent never was in: its working folder as the agent left it, and the task's own tests.

These are the published judges: a folder's script says what it is worth, and of rows the log is read, as SWE-bench does. What
runs is the agent's code beside the tests, so a log can be forged; SWE-v0's own tasks are judged by other means.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.images.tasks import ImageTask
from turnwise.tools.sandbox.core import MIB, Backend, SandboxImage, SandboxLimits

LIMITS = SandboxLimits(
    memory=4096 * MIB, cpus=2.0, processes=512, disk=2048 * MIB, scratch=512 * MIB, inodes=400_000,
    file_size=1024 * MIB, seconds=3600.0,
)  # fmt: skip
_CLEAR = (
    "find /tmp /dev/shm -mindepth 1 -delete; mkdir -p /tmp/tests /tmp/logs/verifier && tar -x -C /tmp/tests"
)
_LINE = re.compile(
    r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\s+([^\s\[]+\[.*?\](?=\s|$)|\S+)", re.MULTILINE
)
_UNITTEST = re.compile(r"^(\S+ \(\S+\))(?:\n.*)? \.\.\. (ok|FAIL|ERROR|skipped)", re.MULTILINE)


class ImageVerdict(NamedTuple):
    """``reward`` from 0 to 1, and ``why`` in a few words."""

    reward: float
    why: str


def judge(backend: Backend, left: SandboxImage, task: ImageTask) -> ImageVerdict:
    """Judge the files that an agent ``left``.

    Raises:
        SandboxError: no container can be started.
    """
    with backend.start(left, LIMITS) as box:
        box.exec(["bash", "-c", _CLEAR], stdin=_archive(task.tests))
        done = box.exec(["bash", "-c", task.judge], timeout=task.seconds, output=32 * MIB)
    if done.timed_out:
        return ImageVerdict(0.0, "the tests took too long")
    if task.fail_to_pass:
        return _of_log(task, statuses(done.out))
    last = done.out.strip().rpartition("\n")[2]
    try:
        reward = min(max(float(last), 0.0), 1.0)
    except ValueError:
        return ImageVerdict(0.0, f"the test script gave no reward: {last[:100]!r}")
    return ImageVerdict(reward, f"the test script gave {last}")


def statuses(log: str) -> dict[str, str]:
    """Read each test's status from the log of pytest (``-rA``), or of unittest in words.

    >>> statuses("PASSED t.py::a\\nFAILED t.py::b[x y] - assert 1\\ntest_c (m.K) ... ok")
    {'t.py::a': 'PASSED', 't.py::b[x y]': 'FAILED', 'test_c (m.K)': 'PASSED'}
    """
    found = {name: status for status, name in _LINE.findall(log)}
    return found | {name: "PASSED" if said == "ok" else "FAILED" for name, said in _UNITTEST.findall(log)}


def _of_log(task: ImageTask, seen: Mapping[str, str]) -> ImageVerdict:
    failed, broken = (
        [name for name in names if seen.get(name) not in ("PASSED", "XFAIL")]
        for names in (task.fail_to_pass, task.pass_to_pass)
    )
    if not failed and not broken:
        return ImageVerdict(1.0, "all tests pass")
    return ImageVerdict(
        0.0, f"{len(failed)} of {len(task.fail_to_pass)} still fail, {len(broken)} others fail now"
    )


def _archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, data in sorted(files.items()):
            about = tarfile.TarInfo(path)
            about.size, about.mode = len(data), 0o755
            archive.addfile(about, io.BytesIO(data))
    return buffer.getvalue()
