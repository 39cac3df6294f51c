"""Holds requests back while the policy's weights change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnwise.agents.gateway.core import RefusedError


class Gate:
    """Open unless somebody holds it; requests wait before it for a while, and are then told to come again.

    Args:
        wait_s: how long a request waits; then it gets 429 with Retry-After.
    """

    def __init__(self, wait_s: float = 30.0) -> None:
        self.wait_s = wait_s
        self._held = 0
        self._inside = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """A request's way through.

        Raises:
            RefusedError: the gate was held for too long.
        """
        async with self._changed:
            try:
                if self._held:
                    async with asyncio.timeout(self.wait_s):
                        await self._changed.wait_for(lambda: not self._held)
            except TimeoutError:
                why = "The policy's weights are being updated. Send the request again."
                raise RefusedError(429, "updating", why, retry_s=max(1.0, self.wait_s / 4)) from None
            self._inside += 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Let nobody through, and wait until nobody is inside."""
        async with self._changed:
            self._held += 1
            try:
                await self._changed.wait_for(lambda: not self._inside)
            except BaseException:
                self._held -= 1
                self._changed.notify_all()
                raise
        try:
            yield
        finally:
            async with self._changed:
                self._held -= 1
                self._changed.notify_all()
