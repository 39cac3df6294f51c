"""Checks of ending: deadlines, survivors, and that nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from turnwise.tools.sandbox.checks.core import Lab, check
from turnwise.tools.sandbox.checks.files import same
from turnwise.tools.sandbox.core import Ended, SandboxError


def _ended(lab: Lab, script: str) -> None:
    """A script that would not end by itself has ended at its deadline."""
    same(lab.sh(script, timeout=0.5).ended, Ended.TIMEOUT)


@check("kill", "a deadline ends a command", 43)
def deadline(lab: Lab) -> None:
    _ended(lab, "sleep 600")


@check("kill", "a deadline ends a command that ignores every signal it can", 43)
def deadline_ignored(lab: Lab) -> None:
    _ended(lab, "trap '' TERM INT HUP QUIT; while :; do :; done")


@check("kill", "a deadline ends children in sessions of their own, and what they inherited", 44)
def deadline_daemons(lab: Lab) -> None:
    _ended(
        lab,
        "date > tick; for i in 1 2 3; do (setsid sh -c 'while :; do date +%N > tick; done' &) done; sleep 600",
    )
    before = lab.sandbox.read("tick")
    time.sleep(0.2)
    same(lab.sandbox.read("tick"), before)


@check("kill", "a command's own timeout may be shorter than the sandbox's, not longer")
def deadline_capped(lab: Lab) -> None:
    from dataclasses import replace

    with lab.start(limits=replace(lab.sandbox.limits, seconds=0.5)) as sandbox:
        same(sandbox.exec(["sleep", "600"], timeout=300).ended, Ended.TIMEOUT)


@check("kill", "what a command leaves running ends with it", 44, 76)
def daemon_ends(lab: Lab) -> None:
    lab.sh(
        "(setsid nohup sh -c 'while :; do date +%N > tick; done' > /dev/null 2>&1 &); "
        "while [ ! -e tick ]; do sleep 0.01; done"
    )
    before = lab.sandbox.read("tick")
    time.sleep(0.2)
    same(lab.sandbox.read("tick"), before)


@check("kill", "a command that holds its output open through a child still ends", 44)
def pipe_holder(lab: Lab) -> None:
    result = lab.sh("(setsid sleep 600 &) ; echo done")
    same((result.stdout, result.ended), (b"done\n", Ended.EXIT))


@check("kill", "a command that stops itself ends at its deadline", 43)
def stopped(lab: Lab) -> None:
    _ended(lab, "kill -STOP $$")


@check("kill", "killing everything it can reach does not end the sandbox", 44)
def kill_everything(lab: Lab) -> None:
    same(lab.sh("kill -9 -1; sleep 0.1").ended, Ended.EXIT)
    lab.sh("kill -9 1; kill -STOP 1; kill -TERM 1")
    same(lab.sh("echo alive").stdout, b"alive\n")


@check("kill", "orphans and zombies are buried")
def zombies(lab: Lab) -> None:
    lab.py(
        "import os\nfor _ in range(15):\n    if os.fork() == 0:\n        if os.fork() == 0: os._exit(0)\n        os._exit(0)"
    )
    same(lab.sh("echo alive").stdout, b"alive\n")


@check("kill", "closing ends a running command")
def close_while_running(lab: Lab) -> None:
    sandbox = lab.start()
    ended: list[str] = []

    def run() -> None:
        try:
            ended.append(sandbox.exec(["sleep", "600"]).ended)
        except SandboxError:
            ended.append("closed")

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    sandbox.close()
    thread.join()
    same(ended, ["closed"])


@check("kill", "closing twice is nothing, and a closed sandbox says so")
def close_twice(lab: Lab) -> None:
    sandbox = lab.start()
    sandbox.close()
    sandbox.close()
    try:
        sandbox.exec(["true"])
    except SandboxError:
        return
    raise AssertionError("a closed sandbox ran a command")


_HOST = """
import sys, time
from turnwise.tools.sandbox.core import SandboxImage, SandboxLimits
from turnwise.tools.sandbox.registry import get_backend
sandbox = get_backend(sys.argv[1], unsafe=True).start(SandboxImage(), SandboxLimits(seconds=900))
print("ready", flush=True)
sandbox.exec(["sleep", sys.argv[2]])
"""


@check("kill", "when the host's process is killed, nothing of its sandboxes stays", 47)
def host_killed(lab: Lab) -> None:
    mark = f"{900 + time.monotonic_ns() % 10**6 / 10**6:.6f}"
    command = [sys.executable, "-c", _HOST, lab.backend.name, mark]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        same(host.stdout.readline(), b"ready\n")
        _wait_for(lambda: _running(mark) > 0, "the command did not start")
        host.kill()
    _wait_for(lambda: _running(mark) == 0, "the command still runs")


def _running(mark: str) -> int:
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        found += words[:2] == [b"sleep", mark.encode()]
    return found


def _wait_for(condition: object, message: str) -> None:
    assert callable(condition)
    for _ in range(4000):  # much longer than it takes, and shorter than what is waited for would last
        if condition():
            return
        time.sleep(0.03)
    raise AssertionError(message)
