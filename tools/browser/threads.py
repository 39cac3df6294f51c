"""An event loop in a thread of its own, for what must live on one loop while its callers are threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines for other threads until :meth:`close`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], seconds: float) -> Result:
        """The coroutine's result.

        Raises:
            TimeoutError: it took longer than ``seconds``; it is cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise TimeoutError(f"not done after {seconds:g} s") from None

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine without waiting for it."""
        if self.loop.is_running():
            asyncio.run_coroutine_threadsafe(work, self.loop)
        else:
            work.close()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self.loop.close()
