"""Blocking calls off the event loop: each in a daemon thread of its own, none in a queue.

``asyncio.to_thread`` shares one executor of a few threads: calls wait there for a place while their deadline runs, a
hung call keeps its place for ever, and the process cannot end before it does. Here a call begins at once, its clock
with it; a call that cannot be interrupted is left behind, and the process may end without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from turnwise.errors import RunError
from turnwise.watchdog import late, limited, where

Args = ParamSpec("Args")
Result = TypeVar("Result")

IDLE_S = 10.0
"""A thread without work ends after this."""
SLACK_S = 0.3
"""Seconds that an interrupted call may take to say where it stood."""
MAX_STUCK = 256
"""Threads that hang in C code before the run is stopped: each keeps its memory."""


async def in_thread(
    what: str, seconds: float, function: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Call a function in a thread, for at most ``seconds``.

    Args:
        what: is called, for messages: "step() of turnwise/Shop-v0".
        seconds: counted from the moment at which the call begins.
        function: what is called with the other arguments.

    Raises:
        DeadlineError: it took longer. Pure Python was interrupted, C code is left behind.
        RunError: too many calls hang.
    """
    context = contextvars.copy_context()
    job = _Job(what, seconds, lambda: context.run(function, *args, **kwargs))
    _idle_thread().inbox.put(job)
    return await job.future


def stuck() -> int:
    """The number of calls that are left behind in their threads now."""
    return len(_stuck)


class _Job:
    """One call, and what the event loop and the thread know of it."""

    def __init__(self, what: str, seconds: float, call: Callable[[], Any]) -> None:
        self.what, self.seconds, self.call = what, seconds, call
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.started = 0.0
        self.ended = False
        self.thread: _Thread | None = None
        self.timer = self.loop.call_later(seconds + SLACK_S, self._expire) if seconds < 1e9 else None

    def deliver(self, value: Any, error: BaseException | None) -> None:
        """Hand over what came of it; on the event loop."""
        if self.timer is not None:
            self.timer.cancel()
        if self.future.done():  # nobody waits any more
            return
        if error is None:
            self.future.set_result(value)
        elif isinstance(error, StopIteration):  # which a future does not take
            self.future.set_exception(RuntimeError(f"{self.what} raised StopIteration: {error}"))
        else:
            self.future.set_exception(error)

    def _expire(self) -> None:
        """Give the call up, unless it began late or its result is on its way."""
        if self.future.done() or self.ended:
            return
        due = (self.started or time.monotonic()) + self.seconds + SLACK_S
        if (wait := due - time.monotonic()) > 0:
            self.timer = self.loop.call_later(wait, self._expire)
            return
        assert self.thread is not None
        _stuck.add(self.thread)
        stood = where(self.thread.ident or 0)
        if len(_stuck) > MAX_STUCK:
            self.future.set_exception(
                RunError(
                    f"{len(_stuck)} calls hang in C code, the last of them {self.what} at {stood}.",
                    "Set rollout.env_workers (`--env-workers`): in worker processes a hung call can be ended.",
                )
            )
        else:
            self.future.set_exception(late(self.what, self.seconds, stood))


class _Thread(threading.Thread):
    """Carries out one call after the other, and ends when there is none for a while."""

    def __init__(self) -> None:
        super().__init__(name="turnwise-call", daemon=True)
        self.inbox = queue.SimpleQueue[_Job]()

    def run(self) -> None:
        while True:
            try:
                job = self.inbox.get(timeout=IDLE_S)
            except queue.Empty:
                with _lock:
                    if self in _idle:  # else a call is on its way
                        _idle.remove(self)
                        return
                continue
            self._carry_out(job)

    def _carry_out(self, job: _Job) -> None:
        value, failed = None, None
        job.thread, job.started = self, time.monotonic()
        try:
            value = limited(job.what, job.seconds, job.call)
        except BaseException as error:  # noqa: BLE001 (the caller judges it)
            failed = error
        job.ended = True
        _stuck.discard(self)
        with _lock:
            _idle.append(self)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            job.loop.call_soon_threadsafe(job.deliver, value, failed)


_lock = threading.Lock()
_idle: list[_Thread] = []
_stuck: set[_Thread] = set()


def _idle_thread() -> _Thread:
    with _lock:
        if _idle:
            return _idle.pop()
    thread = _Thread()
    thread.start()
    return thread


def _after_fork() -> None:
    """A forked child has none of the threads."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()
    _stuck.clear()


os.register_at_fork(after_in_child=_after_fork)
