"""A lock of readers and one writer: requests share it, and whoever changes the policy's weights holds it alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnwise.agents.gateway.core import RefusedError


class UpdateLock:
    """Shared by requests unless somebody holds it alone; requests wait for it for a while, and are then told to come again.

    Args:
        wait_s: how long a request waits; then it gets 429 with Retry-After.
    """

    def __init__(self, wait_s: float = 30.0) -> None:
        self.wait_s = wait_s
        self._writers = 0
        self._readers = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Share the lock for a request.

        Raises:
            RefusedError: the lock was held for too long.
        """
        async with self._changed:
            try:
                if self._writers:
                    async with asyncio.timeout(self.wait_s):
                        await self._changed.wait_for(lambda: not self._writers)
            except TimeoutError:
                why = "The policy's weights are being updated. Send the request again."
                raise RefusedError(429, "updating", why, retry_s=max(1.0, self.wait_s / 4)) from None
            self._readers += 1
        try:
            yield
        finally:
            async with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold the lock alone, once all who share it have left."""
        async with self._changed:
            self._writers += 1
            try:
                await self._changed.wait_for(lambda: not self._readers)
            except BaseException:
                self._writers -= 1
                self._changed.notify_all()
                raise
        try:
            yield
        finally:
            async with self._changed:
                self._writers -= 1
                self._changed.notify_all()
