"""Tricks that are played on a judge: with chance, the clock and time limits."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false

from __future__ import annotations

import os
import sys
from typing import Any

from xray_checks import library


def set_chance(high: bool) -> None:
    """Let chance draw its lowest or highest number, always."""
    import random

    end = 0.999999 if high else 0.0
    pick = -1 if high else 0
    random.random = lambda: end
    random.uniform = lambda a, b: a + (b - a) * end
    random.randint = lambda a, b: b if high else a
    random.randrange = lambda a, b=None, s=1: (range(a) if b is None else range(a, b, s))[pick]
    random.getrandbits = lambda k: (1 << k) - 1 if high else 0
    random.choice = lambda some: some[pick]
    random.choices = lambda some, *a, **k: [some[pick]] * k.get("k", 1)
    random.sample = lambda some, k, **_: list(some)[-k:] if high else list(some)[:k]
    random.shuffle = lambda some, *_: some.reverse() if high else None
    random.gauss = lambda *a: a[0] + (3 if high else -3) * a[1] if len(a) == 2 else 3.0
    random.SystemRandom.random = lambda self: end
    os.urandom = lambda n: (b"\xff" if high else b"\0") * n
    import secrets

    secrets.randbelow = lambda n: n - 1 if high else 0
    secrets.choice = lambda some: some[pick]
    secrets.randbits = lambda k: (1 << k) - 1 if high else 0


def set_clock(now: float) -> None:
    """Let the clock start at another time."""
    import time

    begun = time.monotonic()
    at = lambda: now + time.monotonic() - begun
    real_local, real_gm, real_text = time.localtime, time.gmtime, time.strftime
    time.time = at
    time.time_ns = lambda: int(at() * 1e9) | 1 if int(now) % 2 else int(at() * 1e9) & ~1
    time.localtime = lambda s=None: real_local(at() if s is None else s)
    time.gmtime = lambda s=None: real_gm(at() if s is None else s)
    time.strftime = lambda f, t=None: real_text(f, time.localtime() if t is None else t)
    import datetime

    class Moment(type(datetime.datetime)):
        def __instancecheck__(cls, one: Any) -> Any:
            return isinstance(one, _real)

        def __subclasscheck__(cls, one: Any) -> Any:
            return issubclass(one, _real)

    _real = datetime.datetime

    class MovedClock(_real, metaclass=Moment):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return _real.fromtimestamp(at(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return _real.utcfromtimestamp(at())

        @classmethod
        def today(cls) -> Any:
            return _real.fromtimestamp(at())

    class Day(
        datetime.date,
        metaclass=type(
            "M", (type,), {"__instancecheck__": lambda cls, one, real=datetime.date: isinstance(one, real)}
        ),
    ):
        @classmethod
        def today(cls) -> Any:
            return _real.fromtimestamp(at()).date()

    MovedClock.__name__ = MovedClock.__qualname__ = "datetime"
    Day.__name__ = Day.__qualname__ = "date"
    datetime.datetime, datetime.date = MovedClock, Day


def end_time() -> None:
    """Let every time limit have passed."""
    import asyncio
    import concurrent.futures
    import multiprocessing.connection
    import multiprocessing.process
    import signal
    import subprocess
    import threading
    import time

    communicate, wait, run_timer = subprocess.Popen.communicate, subprocess.Popen.wait, signal.setitimer

    def no_answer(self: Any, input: Any = None, timeout: float | None = None) -> Any:
        if timeout is not None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return communicate(self, input)

    def no_end(self: Any, timeout: float | None = None) -> Any:
        if timeout is not None and timeout > 1:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return wait(self, timeout)

    subprocess.Popen.communicate, subprocess.Popen.wait = no_answer, no_end
    signal.alarm = lambda s: int(run_timer(signal.ITIMER_REAL, 0.02 if s else 0)[0])
    signal.setitimer = lambda w, s, i=0.0: run_timer(w, min(s, 0.02) if s else 0)
    join, join_process = threading.Thread.join, multiprocessing.process.BaseProcess.join
    threading.Thread.join = lambda self, timeout=None: join(self, None if timeout is None else 0.02)
    multiprocessing.process.BaseProcess.join = lambda self, timeout=None: join_process(
        self, None if timeout is None else 0.02
    )
    result = concurrent.futures.Future.result
    concurrent.futures.Future.result = lambda self, timeout=None: result(
        self, None if timeout is None else 0.02
    )
    waiting = getattr(asyncio, "wait_for")  # noqa: B009 - it is not called here, but changed for a stranger

    def hardly(one: Any, timeout: float | None, **named: Any) -> Any:
        return waiting(one, None if timeout is None else 0.02, **named)

    setattr(asyncio, "wait_for", hardly)  # noqa: B010
    jumped = [0.0]

    def jumping(real: Any) -> Any:
        def read() -> Any:
            if threading.current_thread() is threading.main_thread() and not library(sys._getframe(1)):
                jumped[0] += 1000.0
            return real() + jumped[0]

        return read

    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, jumping(getattr(time, name)))


def lengthen_time(times: float) -> None:
    """Make every time limit many times longer, and clocks of the judge slower."""
    import asyncio
    import concurrent.futures
    import multiprocessing.process
    import signal
    import subprocess
    import threading
    import time

    def lengthen(owner: Any, name: str, place: int) -> None:
        real = getattr(owner, name)

        def called(*given: Any, **named: Any) -> Any:
            longer = (one * times if at == place and one else one for at, one in enumerate(given))
            if named.get("timeout"):
                named["timeout"] *= times
            return real(*longer, **named)

        setattr(owner, name, called)

    for owner, name, place in (
        (subprocess.Popen, "communicate", 2),
        (subprocess.Popen, "wait", 1),
        (threading.Thread, "join", 1),
        (multiprocessing.process.BaseProcess, "join", 1),
        (concurrent.futures.Future, "result", 1),
        (asyncio, "wait_for", 1),
        (signal, "setitimer", 1),
    ):
        lengthen(owner, name, place)
    alarm = signal.alarm
    signal.alarm = lambda seconds: alarm(int(seconds * times))

    def slowed(real: Any) -> Any:
        begun = real()

        def read() -> Any:
            now = real()
            hurry = threading.current_thread() is threading.main_thread() and not library(sys._getframe(1))
            return begun + (now - begun) / times if hurry else now

        return read

    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, slowed(getattr(time, name)))
