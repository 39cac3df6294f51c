"""The thread that speaks to engines, and who of them serves: what sampling, watching and publishing have in common."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from turnwise.agents.core import Completion
from turnwise.agents.remote.answer import Job, SampledTokens
from turnwise.agents.remote.client import RemoteServer, new_session
from turnwise.agents.remote.router import Router
from turnwise.errors import EngineError

MOST_ENGINES = 64
_logger = logging.getLogger(__name__)
Result = TypeVar("Result")


class Serving:
    """Engines by a :class:`Router`, in a thread with a loop of its own. Other threads go through :meth:`on_loop`.

    Attributes:
        router: which engine answers what.
        pool: threads for calls that block.
        changed: set where an engine was admitted.
    """

    def __init__(self, servers: Sequence[RemoteServer]) -> None:
        self.router = Router(servers)
        self.pool = ThreadPoolExecutor(MOST_ENGINES, "turnwise-remote")
        self.changed = asyncio.Event()
        self._running: dict[RemoteServer, set[asyncio.Task[Completion]]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="turnwise-remote", daemon=True)
        self._thread.start()

    # --- from any thread -----------------------------------------------------------------------

    def on_loop(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run in the engines' thread and wait."""
        return self.begin(work).result()

    def begin(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Begin to run in the engines' thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Callable[[], Result]) -> Result:
        """Call something in the engines' thread and wait."""
        return self.on_loop(_soon(work))

    def miss(self, server: RemoteServer, error: EngineError) -> None:
        """Take out an engine that does not answer as one."""
        self.call(lambda: self.take_out(server, "dead", error.cause))

    def end_thread(self) -> None:
        """End all that goes on in the engines' thread, and the thread."""
        with contextlib.suppress(RuntimeError):
            self.on_loop(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # --- in the thread of the engines ----------------------------------------------------------

    async def open(self) -> None:
        """Make ready to sample."""
        self._session = new_session()

    async def blocking(self, work: Callable[..., Result], *given: Any) -> Result:
        """Call something that blocks."""
        return await self._loop.run_in_executor(self.pool, work, *given)

    async def blocking_long(self, work: Callable[[], Result]) -> Result:
        """The same for what may wait for others that hold the pool."""
        return await self._loop.run_in_executor(None, work)

    async def answer(self, server: RemoteServer, job: Job, kept: SampledTokens) -> Completion:
        """The answer from this engine.

        Raises:
            Lost: it does not come; among others because the engine is taken out meanwhile.
        """
        reading = server.begin(job, kept)
        task = asyncio.create_task(server.sample(self._session, reading))
        running = self._running.setdefault(server, set())
        running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            mine = asyncio.current_task()
            if mine is not None and mine.cancelling():
                raise
            raise reading.lost("taken out", f"{server.name} was taken out") from None
        finally:
            running.discard(task)
            server.readings.discard(reading)

    def take_out(self, server: RemoteServer, cause: str, detail: str) -> None:
        """Send no more to an engine, and let others go on with what it was sampling."""
        if cause == "taken out":  # this was told when it was
            return
        if self.router.take_out(server, cause, detail) or server is self.router.leaving.get(server.name):
            _logger.warning("the engine %s is out (%s): %s", server.name, cause, detail)
            for task in self._running.pop(server, set()):
                task.cancel()

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if hasattr(self, "_session"):
            await self._session.close()


async def _soon(call: Callable[[], Result]) -> Result:
    return call()
