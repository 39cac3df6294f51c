"""A worker process as its parent sees it: calls that are answered, fail, or are given up."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import logging
import pickle
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault
from turnwise.agents.workers.process import Ending, WorkerProcess
from turnwise.agents.workers.wire import Ask, Beat, Bye, Parting, WorkerAnswer, pack

SLACK_S = 0.5
"""Beyond its deadline, what an interrupted call may take to say where it stood."""
START_S = 120.0
"""Seconds that a process may take to give its first sign of life."""
SILENCE_S = 10.0
"""Without a sign of life for so long, a process with an overdue call is taken to be frozen."""
MAX_STUCK = 8
"""Calls that hang in one process before it takes no new environments."""
END_S = 5.0
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
_logger = logging.getLogger(__name__)


class _Call(NamedTuple):
    """A call that is not answered yet."""

    future: concurrent.futures.Future[WorkerAnswer]
    slot: int
    what: str
    seconds: float
    asked: float


class Worker:
    """One process with environments in slots.

    Args:
        number: of the worker, for messages.
        process: that runs, or is about to.
        alone: it is for one environment only, which is suspected of ending its process.
        on_end: called once it has ended.
    """

    def __init__(
        self, number: int, process: WorkerProcess, *, alone: bool, on_end: Callable[[Worker], None]
    ) -> None:
        self.number, self.alone, self.leaving = number, alone, False
        self.slots: dict[int, object] = {}  # those in use, each with the key of the episode that it serves
        self.stuck: set[int] = set()
        self.ended = ""  # how, once it has
        self.pid = 0  # of the process itself, once it has said so; a keeper is over it
        self._on_end = on_end
        self._numbers, self._slot_numbers = itertools.count(), itertools.count()
        self._calls: dict[int, _Call] = {}
        self._lock = threading.Lock()
        self._closing = False
        self._parting: Parting | None = None
        self._frozen: int | None = None  # the number of the call for which the process was killed
        self._heard = time.monotonic()
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._process = process
        self._threads = [
            threading.Thread(target=task, name=f"worker {number}", daemon=True)
            for task in (self._receive, self._send)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def usable(self) -> bool:
        """True if it may take one more environment."""
        return not (self.ended or self.leaving) and len(self.stuck) < MAX_STUCK

    @property
    def place(self) -> str:
        """The host that it is on; empty: this machine."""
        return self._process.place

    def open_slot(self, key: object) -> int:
        """A place for an environment that serves the episode ``key``."""
        slot = next(self._slot_numbers)
        self.slots[slot] = key
        return slot

    def ask(
        self,
        slot: int,
        method: str,
        what: str,
        seconds: float,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> concurrent.futures.Future[WorkerAnswer]:
        """Call a method of the environment in ``slot``; the future is resolved in any case, or fails with a Fault."""
        future: concurrent.futures.Future[WorkerAnswer] = concurrent.futures.Future()
        number = next(self._numbers)
        try:
            frame = pack(
                Ask(number, slot, method, pickle.dumps((args, kwargs), pickle.HIGHEST_PROTOCOL), seconds)
            )
        except Exception as error:  # noqa: BLE001 (pickle raises anything)
            message = f"{what}: the arguments cannot go to a worker process: {type(error).__name__}: {error}"
            future.set_exception(Fault(Outcome.ENV_ERROR, message))
            return future
        with self._lock:
            if self.ended or slot in self.stuck:
                why, innocent = self.ended or "an earlier call of it hangs", bool(self.ended)
                future.set_exception(Fault(Outcome.INFRA_ERROR, f"{what}: {why}", innocent=innocent))
                return future
            self._calls[number] = _Call(future, slot, what, seconds, time.monotonic())
        self._outbox.put(frame)
        return future

    def look(self) -> None:
        """Kill the process if it is frozen: no heartbeat, and a call overdue. Called periodically."""
        if self.ended:
            return
        self._process.look()
        now = time.monotonic()
        if now - self._heard < (SILENCE_S if self.pid else START_S):
            return
        for number, call in list(self._calls.items()):
            if now - call.asked > call.seconds + SILENCE_S:
                self._frozen = number
                self.kill()
                return

    def kill(self) -> None:
        """End the process, and all that it started, at once."""
        self._process.kill()

    def close(self, seconds: float) -> None:
        """Ask it to close its environments and end; kill it where that takes too long. Waits until it is reaped."""
        self._closing = True
        self._outbox.put(pack(Bye()))
        if self._process.wait(seconds) is None:
            self.kill()
            self._process.wait(seconds)
        self._process.close(seconds)
        for thread in self._threads:
            thread.join(seconds)

    # --- its two threads -----------------------------------------------------------------------------

    def _send(self) -> None:
        while (data := self._outbox.get()) is not None:
            with contextlib.suppress(OSError):  # it is gone; who waits is informed by _receive
                self._process.send_packed(data)

    def _receive(self) -> None:
        while (frame := self._process.receive()) is not None:
            self._heard = time.monotonic()
            match frame:
                case WorkerAnswer():
                    with self._lock:
                        call = self._calls.pop(frame.number, None)
                    if call is not None:
                        _resolve(call.future, frame)
                case Beat():
                    self.pid = frame.pid
                    self._give_up(frame)
                case Parting():
                    self._parting = frame
                case _:
                    raise TypeError(f"a worker sent {type(frame).__name__}")
        self._finish()

    # --- what becomes of calls -----------------------------------------------------------------------

    def _give_up(self, beat: Beat) -> None:
        """Stop waiting for calls that went on past their deadline: they hang in C code."""
        for number, ran in beat.running.items():
            call = self._calls.get(number)
            if call is None or ran <= call.seconds + SLACK_S:
                continue
            with self._lock:
                if self._calls.pop(number, None) is None:
                    continue
                self.stuck.add(call.slot)
            message = f"{call.what} took more than {call.seconds:g} s in C code, and was left behind"
            _resolve(call.future, Fault(Outcome.INFRA_ERROR, message, late=True))

    def _finish(self) -> None:
        """The process has ended: say how, and fail what it has not answered."""
        ending = self._process.wait(30) or Ending(None)
        self._outbox.put(None)
        with self._lock:
            self.ended = f"its worker process {ending}"
            calls, self._calls = self._calls, {}
        if not self._closing:
            self._tell(ending)
        for number, call in calls.items():
            _resolve(call.future, self._fault(number, call, ending, others=len(calls) - 1))
        self._on_end(self)
        self._process.close(END_S)
        if self.pid and not self.place:  # another host reaps its own
            from turnwise.tools.sandbox.reap import reap  # and psutil, which only a worker that died needs

            for removed in reap(self.pid):
                _logger.info("worker %d left behind: %s", self.number, removed)

    def _tell(self, ending: Ending) -> None:
        keys = list(self.slots.values())
        shown = ", ".join(map(str, keys[:8])) + (" …" if len(keys) > 8 else "")
        held = f"; it held the episodes {shown}" if keys else ""
        last = ending.words.decode("utf-8", "replace").strip().splitlines()
        said = f"; the last that it printed: {last[-1][:200]}" if last else ""
        at = f" at {self.place}" if self.place else ""
        _logger.warning("worker %d%s %s%s%s", self.number, at, ending, held, said)

    def _fault(self, number: int, call: _Call, ending: Ending, *, others: int) -> Fault:
        """Return the fault of a call that the end met: the end was this call's doing for certain, another's for certain,
        or that of one of several."""
        if self._frozen is not None:
            if number == self._frozen:
                message = f"{call.what} took more than {call.seconds:g} s and let nothing else run: its process was ended"
                return Fault(Outcome.INFRA_ERROR, message, late=True, suspect=True)
            message = f"{call.what}: its process was ended for another call in it"
            return Fault(Outcome.INFRA_ERROR, message, innocent=True)
        if self._parting is not None:
            if number == self._parting.number:
                return Fault(
                    Outcome.ENV_ERROR, f"{call.what} ended its process with code {self._parting.code}"
                )
            message = f"{call.what}: another environment ended the process that it ran in"
            return Fault(Outcome.INFRA_ERROR, message, innocent=True)
        if ending.why:
            return Fault(Outcome.INFRA_ERROR, f"{call.what}: {self.ended}", innocent=True)
        if others:
            return Fault(Outcome.INFRA_ERROR, f"{call.what}: {self.ended}", suspect=True)
        code = ending.code
        own = code is not None and (code >= 0 or -code in _CRASHES)
        outcome = Outcome.ENV_ERROR if own else Outcome.INFRA_ERROR
        return Fault(outcome, f"{call.what}: {self.ended}", suspect=not self.alone and not own)


def _resolve(future: concurrent.futures.Future[WorkerAnswer], result: WorkerAnswer | Fault) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):  # nobody waits any more
        if isinstance(result, Fault):
            future.set_exception(result)
        else:
            future.set_result(result)
