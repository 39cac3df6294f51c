"""Drives an engine that works in steps from asyncio: continuous batching without lock-step.

Requests wait in a queue; one task admits them, steps the engine while anything is in flight and hands
each result to whoever waits for it. Between two steps the event loop turns, so that episodes whose
turn is done act in their environment and have their next prompt in the very next step. Those whose callers
come through a socket are given a part of a step's time for it. When nothing is in flight there is no
task: an idle engine costs nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, Protocol, TypeVar

from turnwise.errors import EngineError, TurnwiseError
from turnwise.watchdog import engine_step

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)
RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")

YIELDS = 3
"""Turns of the event loop between two steps: one for the episode that waits for the result itself, two more for those it
wakes (a place in a semaphore, a task group)."""

COMES_THROUGH_A_SOCKET: ContextVar[bool] = ContextVar("COMES_THROUGH_A_SOCKET", default=False)
"""True where the requests of this context are a program's, elsewhere: its next one takes longer than :data:`YIELDS`."""


class StepEngine(Protocol[RequestT_contra, AnswerT_co]):
    """An engine that works in steps. It is never called from two threads at once."""

    def add(self, key: int, request: RequestT_contra) -> None:
        """Take a request into the running batch, as far as there is room."""
        ...

    def abort(self, keys: Sequence[int]) -> None:
        """Forget requests; unknown keys are ignored."""
        ...

    def step(self) -> Iterable[tuple[int, AnswerT_co]]:
        """One step for everything in flight; returns what is finished."""
        ...


class EngineLoop(Generic[RequestT, AnswerT]):
    """Runs a :class:`StepEngine` for any number of concurrent ``await submit(request)``.

    Args:
        engine: it works in steps.
        threaded: step in a thread of its own, so that environments run meanwhile. Right for a GPU; on
            a CPU the steps belong on the event loop's thread, which alone gets all OpenMP threads.
    """

    def __init__(self, engine: StepEngine[RequestT, AnswerT], *, threaded: bool) -> None:
        self._engine = engine
        self._executor = ThreadPoolExecutor(1, "turnwise-engine") if threaded else None
        self._keys = itertools.count()
        self._waiting: deque[tuple[int, RequestT]] = deque()
        self._futures: dict[int, asyncio.Future[AnswerT]] = {}
        self._dropped: list[int] = []
        self._from_afar: set[int] = set()
        self._step_s = 0.0  # what the last step took
        self._away = 0  # callers from afar that were answered after the last step and have not asked since
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()  # held while the engine works
        self._turnstile = threading.Lock()  # passed before the lock, so that who waits for it comes next
        self._going = asyncio.Event()
        self._going.set()

    @property
    def in_flight(self) -> int:
        """The number of requests that are waiting or running."""
        return len(self._futures)

    def alone(self) -> threading.Lock:
        """To be held while the engine is used or changed from outside.

        Raises:
            EngineError: requests are in flight.
        """
        if self.in_flight:
            raise EngineError(
                f"{self.in_flight} requests are in flight.",
                "Await them before touching the engine's weights.",
            )
        return self._lock

    @contextmanager
    def between_steps(self) -> Generator[None]:
        """Hold the engine between two steps, requests in flight or not; from any thread. Blocks until the step is over."""
        with self._turnstile:
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    def pause(self) -> None:
        """Take no step after this one until :meth:`resume`. In the event loop's thread, as is :meth:`resume`."""
        self._going.clear()

    def resume(self) -> None:
        """Step again."""
        self._going.set()

    async def submit(self, request: RequestT) -> AnswerT:
        """The engine's answer. Cancelling the caller takes the request out of the batch.

        Raises:
            EngineError: the engine failed; so do all other requests in flight.
        """
        loop = asyncio.get_running_loop()
        key, future = next(self._keys), loop.create_future()
        self._start(loop)
        self._futures[key] = future
        self._waiting.append((key, request))
        if COMES_THROUGH_A_SOCKET.get():
            self._from_afar.add(key)
            self._away -= 1
            self._asked.set()
        try:
            return await future
        finally:
            self._from_afar.discard(key)
            if self._futures.pop(key, None) is not None:
                self._dropped.append(key)

    def close(self) -> None:
        """Fail what is in flight and let the thread go."""
        if self._task is not None and not self._task.get_loop().is_closed():
            self._task.cancel()
        if self._executor is not None:
            self._executor.shutdown()

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._task is not None and not self._task.done():
            home = self._task.get_loop()
            if home is loop:
                return
            if home.is_running():
                raise EngineError(
                    "The engine is in use by another event loop.",
                    "Await all its requests from one loop, or give each loop its own engine.",
                )
            self._forget()  # that loop was left in the middle of its requests
        self._asked = asyncio.Event()  # an event is of the loop in which somebody has waited for it
        self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._linger()  # all were away: who comes first is rarely the only one
            while self._futures:
                await self._going.wait()
                self._admit()
                began = time.monotonic()
                answers = await self._step()
                self._step_s, self._away = time.monotonic() - began, 0
                for key, answer in answers:
                    future = self._futures.pop(key, None)
                    if future is not None and not future.done():
                        future.set_result(answer)
                        self._away += key in self._from_afar
                for _ in range(YIELDS):
                    await asyncio.sleep(0)
                await self._linger()
        except Exception as error:  # noqa: BLE001 (whatever it is, those who wait must hear of it)
            self._fail(error)
        finally:
            self._forget()

    async def _linger(self) -> None:
        """Wait a little for callers from afar, who would else miss the next step.

        With n requests in flight and k callers away, a wait of w costs the n requests n·w, and who comes within it saves half a
        step on average: it is worth while up to k/(n+k) halves of a step.
        """
        waiting = len(self._futures)
        if self._away <= 0 or not waiting:
            return
        deadline = time.monotonic() + self._step_s * self._away / (waiting + self._away) / 2
        while self._away > 0 and (left := deadline - time.monotonic()) > 0:
            self._asked.clear()
            try:
                async with asyncio.timeout(left):
                    await self._asked.wait()
            except TimeoutError:
                return

    def _admit(self) -> None:
        """Bring the engine up to date with what was asked for and given up since the last step."""
        with self.between_steps():
            if self._dropped:
                self._engine.abort(self._dropped)
                self._dropped = []
            while self._waiting:
                key, request = self._waiting.popleft()
                future = self._futures.get(key)
                if future is None:
                    continue
                try:
                    self._engine.add(key, request)
                except Exception as error:  # noqa: BLE001 (the fault of one request)
                    del self._futures[key]
                    future.set_exception(_engine_error(error))

    async def _step(self) -> Iterable[tuple[int, AnswerT]]:
        if self._executor is None:
            with engine_step():
                return self._locked_step()
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._locked_step)

    def _locked_step(self) -> Iterable[tuple[int, AnswerT]]:
        with self.between_steps():
            return list(self._engine.step()) if self._futures else ()

    def _fail(self, error: Exception) -> None:
        for key, future in list(self._futures.items()):
            self._dropped.append(key)
            if not future.done():
                future.set_exception(_engine_error(error))
        self._futures.clear()

    def _forget(self) -> None:
        """Leave nothing behind in the engine: the task ends, or its loop was abandoned."""
        for future in self._futures.values():
            if not future.done() and not future.get_loop().is_closed():
                future.cancel()
        dropped = [*self._dropped, *self._futures]
        self._futures.clear()
        self._waiting.clear()
        self._dropped = []
        if dropped:
            with self.between_steps():
                self._engine.abort(dropped)


def _engine_error(error: Exception) -> TurnwiseError:
    """A fresh error for each request: one exception raised in many tasks would grow their tracebacks."""
    if isinstance(error, TurnwiseError):
        return type(error)(error.cause, error.remedy)
    wrapped = EngineError(
        f"The engine failed: {type(error).__name__}: {error}", "The episodes in flight can be played again."
    )
    wrapped.__cause__ = error
    return wrapped
