"""Programs that do not want to end do so, when they are told to and when whoever started them is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

STUBBORN = """
import os, signal, time
from turnwise.agents.remote.orphan import end_with_parent
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end_with_parent({by})
print(os.getpid(), flush=True)
time.sleep(600)
"""
OVER = """
import sys
from turnwise.agents.remote import orphan
orphan.PATIENCE_S = 0.5
sys.exit(orphan.stand_over([sys.executable, "-c", sys.argv[1]], {}))
"""


def started(by: str) -> tuple[subprocess.Popen[str], psutil.Process]:
    """A process that stands over a program which ignores SIGTERM, and that program."""
    over = subprocess.Popen(
        [sys.executable, "-c", OVER, STUBBORN.format(by=by)], stdout=subprocess.PIPE, text=True
    )
    assert over.stdout is not None
    with over.stdout as lines:
        return over, psutil.Process(int(lines.readline()))


@pytest.fixture
def killed() -> Iterator[list[psutil.Process]]:
    mine: list[psutil.Process] = []
    yield mine
    for one in mine:
        if one.is_running():
            one.kill()


@pytest.mark.slow
def test_a_program_that_was_told_to_end_is_killed_in_the_end(killed: list[psutil.Process]) -> None:
    over, program = started("signal.SIGTERM")
    killed.append(program)
    over.terminate()
    assert over.wait(60) == 0
    assert not program.is_running()


@pytest.mark.slow
def test_a_program_ends_by_force_with_whoever_stood_over_it(killed: list[psutil.Process]) -> None:
    over, program = started("signal.SIGKILL")
    killed.append(program)
    over.send_signal(signal.SIGKILL)
    over.wait(60)
    program.wait(60)
    assert not program.is_running()
