"""Each sandbox has a user of its own: what the kernel counts by user, one cannot take from another."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from turnwise.tools.sandbox import uids
from turnwise.tools.sandbox.core import Backend, Sandbox, SandboxError, SandboxImage

TAKE_ALL = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
taken = 0
while libc.inotify_init() >= 0:
    taken += 1
print(taken)
if len(sys.argv) > 1:
    open("ready", "w")
    time.sleep(25)
"""


def most_instances() -> int:
    return int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())


def holds(mark: str) -> bool:
    """Whether the program with this argument has taken all that it can: then it sleeps."""
    for one in psutil.process_iter(["cmdline"]):
        if (one.info["cmdline"] or [""])[-1] == mark and one.num_fds() >= most_instances():
            return True
    return False


def test_one_cannot_take_all_inotify_instances(isolated: Backend) -> None:
    if not 0 < most_instances() < 1000:
        pytest.skip("this machine's limit is beyond the number of descriptors of a sandbox")
    mark = f"take-all-{os.getpid()}"
    with (
        isolated.start(SandboxImage()) as greedy,
        isolated.start(SandboxImage()) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        running = threads.submit(greedy.exec, ["python3", "-c", TAKE_ALL, mark])
        while not running.done() and not holds(mark):
            time.sleep(0.05)
        assert not running.done()
        assert int(other.exec(["python3", "-c", TAKE_ALL]).out) == most_instances()
        greedy.close()
        with pytest.raises(SandboxError):
            running.result()


def number_of(sandbox: Sandbox) -> int:
    return int(sandbox.exec(["id", "-u"]).out)


def test_users_differ_and_files_belong_to_them_after_forks_and_returns(isolated: Backend) -> None:
    with isolated.start(SandboxImage.of({"a": "1"})) as first:
        first.exec(["chmod", "600", "a"])
        moment = first.snapshot()
        with first.fork() as twin, isolated.start(moment) as third:
            numbers = {number_of(one) for one in (first, twin, third)}
            assert len(numbers) == 3
            assert all(uids.FIRST <= number < uids.FIRST + uids.COUNT for number in numbers)
            third.restore(moment)
            for one in (twin, third):
                assert one.exec(["stat", "-c", "%u %a", "a"]).out == f"{number_of(one)} 600\n"
                assert one.exec(["sh", "-c", "cat a && echo 2 > a"]).out == "1"
        first.restore(moment)
        assert first.exec(["cat", "a"]).out == "1"


def test_a_sandboxs_user_has_a_name() -> None:
    from turnwise.tools.sandbox.registry import get_backend

    backend = get_backend("bubblewrap")
    if not backend.status().ok:
        pytest.skip(backend.status().detail)
    with backend.start(SandboxImage()) as sandbox:
        assert sandbox.exec(["sh", "-c", "whoami; id -gn"]).out == "agent\nagent\n"


HOLDING = """
import sys
from turnwise.tools.sandbox import uids
uids.FIRST, uids.COUNT = int(sys.argv[1]), 1
held = uids.take_uid()
print(held.number, flush=True)
sys.stdin.read()
"""


def test_processes_do_not_collide_and_the_dead_hold_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    number = uids.FIRST + 70_000
    monkeypatch.setattr(uids, "COUNT", 1)
    monkeypatch.setattr(uids, "FIRST", number)
    command = [sys.executable, "-c", HOLDING, str(number)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert int(other.stdout.readline()) == number
        with pytest.raises(SandboxError, match="users of sandboxes are taken"):
            uids.take_uid()
        other.kill()
        other.wait()
        mine = uids.take_uid()
        assert mine.number == number
        mine.release()
        mine.release()
        again = uids.take_uid()
        assert again.number == number
        again.release()


def test_a_closed_sandbox_gives_its_user_back(isolated: Backend) -> None:
    with isolated.start(SandboxImage()) as sandbox:
        taken = uids._folder() / str(number_of(sandbox))
        assert taken.exists()
    assert not taken.exists()
