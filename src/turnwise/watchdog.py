"""The watchdog: calls that hang are interrupted, named, or ended together with the process.

Foreign code (an environment, a chat template) may loop for ever. Three layers meet that:

1. :class:`limit` raises :class:`DeadlineError` inside a call that takes too long. Python delivers such an exception
   between two bytecodes, so pure Python is interrupted and C code is not.
2. A ``fatal`` limit, for calls on the event loop's thread, ends the process if that has no effect: nothing else
   could go on. The message names the call, the line and the remedy.
3. C code may also hold the interpreter's lock, and then no Python thread runs. :func:`guard` therefore starts a
   small process beside this one (``turnwise/watchdog_beside.py``) that ends it when it stops beating.

:func:`watch_loop` only tells: it logs which line has held the event loop for seconds.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import faulthandler
import functools
import logging
import mmap
import os
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import ParamSpec, Self, TypeVar

from turnwise.errors import DeadlineError
from turnwise.terminal import visible

POLL_S = 0.1
"""Seconds between two looks at the calls."""
STRIKE_S = 0.02
"""Seconds that an interrupt stays pending in a thread that does not take it."""
LONGEST_PAUSE_S = 30.0
"""Between two interrupts of one call; the first are a second or two apart."""
GRACE_S = 5.0
"""Seconds that an interrupted call on the event loop's thread may take to end before the process does."""
HELD_S = 10.0
"""Seconds that the event loop may be held before whoever holds it is named."""
ENGINE_HELD_S = 300.0
"""The same for an engine that samples on the event loop's thread: a step of a large model on a CPU takes its time."""
EXIT_CODE = 70
"""Of a process that was ended for a call that could not be interrupted."""
REMEDY = (
    "Run the environment in worker processes (rollout.env_workers, `turnwise eval --env-workers`), where a hang "
    "costs its episode alone; a training run goes on with --resume."
)

HELD_REMEDY = (
    "If that is an environment's code, run it in worker processes (rollout.env_workers, `turnwise eval --env-workers`). If it is "
    "a model's on the CPU, nothing hangs: take a GPU, a smaller model or fewer tokens (sampling.max_tokens)."
)

# The shared page: beats (8 bytes), the limit in seconds (8; 0: nothing is guarded), the name's length (4), the name.
_LENGTH_AT, _NAME_SIZE = 16, 512
_STDLIB = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_logger = logging.getLogger(__name__)

Args = ParamSpec("Args")
Result = TypeVar("Result")


class Interrupt(BaseException):
    """Raised inside a call that took too long. No ``Exception``, so that ``except Exception`` lets it through."""


class limit:
    """Interrupt what is called inside when it takes more than ``seconds``. Limits may be nested.

    >>> with limit("an endless loop", 0.2):
    ...     while True:
    ...         pass
    Traceback (most recent call last):
        ...
    turnwise.errors.DeadlineError: an endless loop took more than 0.2 s ...

    Args:
        what: is running, for the message: "step() of turnwise/Shop-v0".
        seconds: that it may take; infinity never fires.
        fatal: end the process where it cannot be interrupted.

    Raises:
        DeadlineError: on leaving, where the time was exceeded.
    """

    __slots__ = (
        "closing",
        "due",
        "fatal",
        "fired",
        "outer",
        "pause",
        "place",
        "retry",
        "seconds",
        "sending",
        "thread",
        "what",
    )

    def __init__(self, what: str, seconds: float, *, fatal: bool = False) -> None:
        self.what, self.seconds, self.fatal = what, seconds, fatal
        self.fired = self.sending = self.closing = False
        self.place = ""

    def __enter__(self) -> Self:
        self.thread = threading.get_ident()
        self.outer = _active.get(self.thread)
        self.due = self.retry = time.monotonic() + self.seconds
        self.pause = 0.5
        if _monitor is None:
            _start_monitor()
        if self.fatal and _page is not None:
            _write_name(_page, self.what)
        _active[self.thread] = self
        return self

    def leave(self) -> None:
        """End this limit, whatever is on its way."""
        self.closing = True
        if self.outer is None:
            _active.pop(self.thread, None)
        else:
            _active[self.thread] = self.outer
        if self.fired or time.monotonic() >= self.due:
            self._settle()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
        if self.fired and not isinstance(error, (KeyboardInterrupt, DeadlineError)):
            raise late(self.what, self.seconds, self.place) from None

    def struck(self) -> DeadlineError:
        """The error where the interrupt hit ``with`` itself, on the way in or out."""
        self.leave()
        return late(self.what, self.seconds, self.place)

    def _settle(self) -> None:
        """Wait for an interrupt that is on its way, and take it: it must not hit what comes after this call."""
        while True:
            try:
                while self.sending:
                    time.sleep(0)
                if self.fired:
                    _take()
                return
            except Interrupt:
                continue

    def send(self, now: float) -> bool:
        """Interrupt the call; again and again in case it catches everything. The monitor sends and withdraws."""
        if _debugged(self.thread):
            return False
        if not self.fired:
            self.place = where(self.thread)
        elif self.fatal and now > self.due + GRACE_S:
            _end_process(self)
        self.pause = min(2 * self.pause, LONGEST_PAUSE_S)
        self.retry = now + self.pause
        self.sending = True
        if not self.closing:
            self.fired = True
            _interrupt(self.thread, Interrupt)
        return True

    def withdraw(self) -> None:
        """Take an interrupt back that did not strike: the thread is in C code."""
        _interrupt(self.thread, None)
        self.sending = False


def limited(
    what: str,
    seconds: float,
    function: Callable[Args, Result],
    *args: Args.args,
    **kwargs: Args.kwargs,
) -> Result:
    """Call a function under a :class:`limit`, on any thread but the event loop's.

    Unlike the ``with`` statement it also holds where the interrupt hits just as the call ends.

    Raises:
        DeadlineError: the time was exceeded.
    """
    entered = limit(what, seconds)
    try:
        with entered:
            return function(*args, **kwargs)
    except Interrupt:
        raise entered.struck() from None


def limited_or_fatal(
    what: str,
    seconds: float,
    function: Callable[Args, Result],
    *args: Args.args,
    **kwargs: Args.kwargs,
) -> Result:
    """:func:`limited` for calls on the event loop's thread: the process ends where they cannot be interrupted."""
    entered = limit(what, seconds, fatal=True)
    try:
        with entered:
            return function(*args, **kwargs)
    except Interrupt:
        raise entered.struck() from None


def late(what: str, seconds: float, place: str = "") -> DeadlineError:
    """Return the error for a call that took too long; ``place`` is where it stood."""
    at = f" (it stood at {place})" if place else ""
    return DeadlineError(
        f"{what} took more than {seconds:g} s{at}.",
        "Make it quicker, or allow it more time (rollout.step_s).",
    )


def where(thread: int) -> str:
    """``file.py:LINE in function``: where a thread stands, outside of Python's own library."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(_STDLIB):
        frame = frame.f_back
    if frame is None:
        return ""
    path = Path(frame.f_code.co_filename)
    return f"{'/'.join(path.parts[-2:])}:{frame.f_lineno} in {frame.f_code.co_name}"


# --- the monitor thread ------------------------------------------------------------------------------

_active: dict[int, limit] = {}  # the innermost limit of each thread
_loops: dict[
    int, tuple[float, bool]
] = {}  # an event loop's thread: when it last turned, and whether that was reported
_sampling = set[int]()  # threads of event loops on which an engine takes a step
_monitor: threading.Thread | None = None
_starting = threading.RLock()  # rollouts may begin in several threads at once
_page: mmap.mmap | None = None  # shared with the process beside this one
_guards: list[float] = []  # the limits of the guards that are in force


def _start_monitor() -> None:
    global _monitor
    with _starting:
        if _monitor is None:
            _monitor = threading.Thread(target=_watch, name="turnwise-watchdog", daemon=True)
            _monitor.start()


def _watch() -> None:
    beats = 0
    while True:
        time.sleep(POLL_S)
        beats += 1
        now = time.monotonic()
        if _page is not None:
            struct.pack_into("<Q", _page, 0, beats)
        _interrupt_late_calls(now)
        for thread, (turned, told) in list(_loops.items()):
            longest = ENGINE_HELD_S if thread in _sampling else HELD_S
            if not told and now - turned > longest and not _debugged(thread):
                _loops[thread] = (turned, True)
                _logger.warning(
                    "the event loop has been held for %.0f s by %s; no other episode goes on meanwhile. %s",
                    now - turned,
                    where(thread),
                    HELD_REMEDY,
                )


def _interrupt_late_calls(now: float) -> None:
    """Interrupt what is late, and leave no interrupt pending in a thread that cannot take it.

    While one is pending anywhere, CPython 3.11 stops for it in every thread at every chance, and a thread that is
    traced or profiled repeats one instruction for ever.
    """
    late_calls = list[limit]()
    for innermost in list(_active.values()):
        call: limit | None = innermost
        while call is not None:
            if now > call.retry and call.send(now):
                late_calls.append(call)
            call = call.outer
    if late_calls:
        time.sleep(STRIKE_S)
        for call in late_calls:
            call.withdraw()
        _take()


def _take() -> None:
    """Raise an interrupt in this thread and catch it: it replaces one that is pending, and clears CPython's flag for it.

    Withdrawing one alone leaves that flag up.
    """
    try:
        _interrupt(threading.get_ident(), Interrupt)
        while True:  # it strikes at once
            pass
    except Interrupt:
        return


def _interrupt(thread: int, kind: type[BaseException] | None) -> None:
    """Let ``kind`` be raised in a thread; None takes back what was not raised yet."""
    raised = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


def _debugged(thread: int) -> bool:
    """Say whether somebody steps through the thread: a breakpoint is no hang."""
    frame: FrameType | None = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_trace is not None:
            return True
        frame = frame.f_back
    return False


def _end_process(call: limit) -> None:
    stood = f", at {call.place}" if call.place else ""
    message = (
        f"\n{call.what} has taken more than {call.seconds:g} s{stood}, and cannot be interrupted: it is in C code. "
        f"Nothing else can go on in this process, so it ends here.\n→ {REMEDY}\n"
    )
    os.write(2, visible(message).encode("utf-8", "replace"))
    os._exit(EXIT_CODE)


@contextlib.asynccontextmanager
async def watch_loop() -> AsyncIterator[None]:
    """Log the line that holds up the running event loop for more than ``HELD_S`` seconds."""
    loop, thread = asyncio.get_running_loop(), threading.get_ident()

    async def turn() -> None:
        while True:
            _loops[thread] = (time.monotonic(), False)
            await asyncio.sleep(POLL_S)

    if _monitor is None:
        _start_monitor()
    turning = loop.create_task(turn())
    try:
        yield
    finally:
        turning.cancel()
        _loops.pop(thread, None)


@contextlib.contextmanager
def engine_step() -> Iterator[None]:
    """A step of an engine on this thread: it holds the event loop by right, and nobody is named for it soon."""
    thread = threading.get_ident()
    _sampling.add(thread)
    try:
        yield
    finally:
        if thread in _loops:
            _loops[thread] = (time.monotonic(), False)
        _sampling.discard(thread)


# --- the process beside this one ---------------------------------------------------------------------


@contextlib.contextmanager
def guard(seconds: float) -> Iterator[None]:
    """While this lasts, end the process if no Python code ran in it for ``seconds`` and some grace.

    Calls are named by the ``fatal`` limits that they run under.
    """
    wanted = seconds + GRACE_S
    with _starting:
        page = _page or _start_beside()
        _guards.append(wanted)
        struct.pack_into("<d", page, 8, max(_guards))
    try:
        yield
    finally:
        with _starting:
            _guards.remove(wanted)
            struct.pack_into("<d", page, 8, max(_guards, default=0.0))


def _start_beside() -> mmap.mmap:
    global _page
    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        script = Path(__file__).with_name("watchdog_beside.py")
        command = [sys.executable, "-I", "-S", str(script), str(os.getpid()), str(file.fileno()), REMEDY]
        if signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL:
            # C code's caller is informed by this alone. Not sys.stderr: a notebook's has no file descriptor.
            faulthandler.register(signal.SIGUSR2, file=2, all_threads=False)
            command.append("dump")
        process = subprocess.Popen(command, pass_fds=(file.fileno(),), stdin=subprocess.DEVNULL)
    atexit.register(_stop, process)
    _page = page
    if _monitor is None:
        _start_monitor()
    return page


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _write_name(page: mmap.mmap, what: str) -> None:
    name = _name(what)
    page[_LENGTH_AT : _LENGTH_AT + len(name)] = name


@functools.lru_cache(256)
def _name(what: str) -> bytes:
    """A name as it stands in the page; every step of an environment writes one."""
    name = visible(what).encode("utf-8", "replace")[:_NAME_SIZE]
    return struct.pack("<I", len(name)) + name


def _after_fork() -> None:
    """A forked child has neither the monitor nor the process beside it."""
    atexit.unregister(_stop)
    global _monitor, _page, _starting
    _monitor, _page, _starting = None, None, threading.RLock()
    _active.clear()
    _loops.clear()
    _sampling.clear()
    _guards.clear()


os.register_at_fork(after_in_child=_after_fork)
