"""What hangs is interrupted, named, or ends the process in time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
import threading
import time

import pytest

from turnwise import watchdog
from turnwise.agents.engines.loop import EngineLoop
from turnwise.errors import DeadlineError, InfraError
from turnwise.watchdog import limit, watch_loop


def spin() -> None:
    while True:
        pass


def spin_and_swallow(until: threading.Event) -> None:
    while not until.is_set():
        try:
            while not until.is_set():
                pass
        except BaseException:  # noqa: BLE001 (as careless code does)
            until.set()


def test_a_python_loop_is_interrupted_and_its_line_named() -> None:
    stood = r"step\(\) of x took more than 0.1 s.*test_watchdog.py:\d+ in spin"
    with pytest.raises(DeadlineError, match=stood), limit("step() of x", 0.1):
        spin()


def test_code_that_catches_everything_is_late_all_the_same() -> None:
    with pytest.raises(DeadlineError), limit("a loop", 0.1):
        spin_and_swallow(threading.Event())


def test_what_is_in_time_is_left_alone_and_errors_pass() -> None:
    with limit("nothing", 60):
        pass
    with pytest.raises(KeyError), limit("an error", 60):
        raise KeyError("x")


def test_the_outer_of_two_limits_counts_too() -> None:
    with pytest.raises(DeadlineError, match="outer"), limit("outer", 0.1), limit("inner", 60):
        spin()
    with pytest.raises(DeadlineError, match="inner"), limit("outer", 60), limit("inner", 0.1):
        spin()


def test_no_interrupt_is_left_for_what_comes_after() -> None:
    for _ in range(20):  # the call ends by itself just when it is due
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watchdog, "POLL_S", 0.001)
            try:
                with limit("a call", 0.01):
                    due = time.monotonic() + 0.0102
                    while time.monotonic() < due:
                        pass
            except DeadlineError:
                pass
            for _ in range(20_000):
                pass
    assert threading.get_ident() not in watchdog._active


def test_a_deadline_is_an_infrastructure_failure() -> None:
    assert issubclass(DeadlineError, InfraError)


def test_whoever_holds_the_event_loop_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watchdog, "HELD_S", 0.3)
    told = threading.Event()
    monkeypatch.setattr(watchdog._logger, "warning", lambda *args: (said.append(args), told.set()))
    said: list[tuple[object, ...]] = []

    def hold() -> None:
        assert told.wait(60)

    async def run() -> None:
        async with watch_loop():
            await asyncio.sleep(0)
            hold()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "in hold" in str(said[0])
    assert "rollout.env_workers" in str(said[0])  # and what to do


def test_an_engine_that_samples_on_the_event_loop_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "HELD_S", 0.2)
    said: list[tuple[object, ...]] = []
    looked = threading.Semaphore(0)
    monkeypatch.setattr(watchdog._logger, "warning", lambda *args: said.append(args))
    monkeypatch.setattr(watchdog, "_interrupt_late_calls", lambda now: looked.release())

    class Slow:
        def add(self, key: int, request: int) -> None:
            self.key = key

        def abort(self, keys: object) -> None:
            pass

        def step(self) -> list[tuple[int, int]]:
            for _ in range(6):  # the watchdog looks so often while the step lasts
                assert looked.acquire(timeout=60)
            return [(self.key, 7)]

    async def run() -> int:
        async with watch_loop():
            return await EngineLoop[int, int](Slow(), threaded=False).submit(1)

    assert asyncio.run(run()) == 7
    assert said == []


PROGRAM = """
import re, sys, time
from turnwise import watchdog
watchdog.GRACE_S = 0.5
with watchdog.guard(0.5), watchdog.limit("step() of x/Slow-v0", 0.5, fatal=True):
    {}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "returncode"),
    [("time.sleep(1000)", watchdog.EXIT_CODE), ("re.match('^(a+)+$', 'a' * 40 + 'b')", -9)],
    ids=["lock-released", "lock-held"],
)
def test_c_code_ends_the_process_and_is_named(code: str, returncode: int) -> None:
    program = PROGRAM.format(code)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=120
    )
    assert done.returncode == returncode
    assert "step() of x/Slow-v0" in done.stderr
    assert "rollout.env_workers" in done.stderr
    assert "<string>" in done.stderr  # the line


@pytest.mark.slow
def test_a_stopped_process_is_not_taken_for_a_hung_one() -> None:
    program = PROGRAM.format("print('on', flush=True); input(); print('done')")
    program = program.replace("0.5, fatal", "1000, fatal")  # the beat alone is tested
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == "on\n"
    process.send_signal(19)  # SIGSTOP
    time.sleep(2.5)  # longer than the guard allows
    process.send_signal(18)  # SIGCONT
    out, _ = process.communicate("\n", timeout=60)
    assert (process.returncode, out) == (0, "done\n")


@pytest.mark.slow
def test_interrupts_leave_no_lock_held_and_no_limit_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "POLL_S", 0.0005)
    lock, ended = threading.Lock(), 0

    def call() -> None:
        due = time.monotonic() + 0.002
        while time.monotonic() < due:
            pass

    def work() -> None:
        nonlocal ended
        for _ in range(300):  # each ends just when it is due
            with contextlib.suppress(DeadlineError):
                watchdog.limited("a call", 0.002, call)
            with lock:
                pass
        ended += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ended == len(threads)
    assert lock.acquire(blocking=False)
    assert threading.get_ident() not in watchdog._active


@pytest.mark.slow
@pytest.mark.parametrize("left_behind", [False, True], ids=["settled", "in C code"])
def test_interrupts_do_not_hang_whoever_is_profiled(left_behind: bool) -> None:
    """CPython 3.11 repeats one instruction of a traced thread for as long as an interrupt is pending anywhere."""
    program = f"""
import sys, threading, time
from turnwise.watchdog import DeadlineError, limited
if {left_behind}:
    threading.Thread(target=lambda: limited("a nap", 0.05, time.sleep, 1e6), daemon=True).start()
    time.sleep(1)
def spin():
    while True: pass
for _ in range(3):
    try: limited("a loop", 0.05, spin)
    except DeadlineError: pass
def f(): pass
calls = 0
def note(*_):
    global calls
    calls += 1
sys.setprofile(note)
until = time.monotonic() + 3.0  # longer than the pauses between interrupts
while time.monotonic() < until: f()
sys.setprofile(None)
print("done", calls > 100)
import os; os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "done True\n", done.stderr
