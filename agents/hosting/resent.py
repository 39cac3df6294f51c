"""Requests that change something and may be sent again, because the answer to the first was lost: each is carried out once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from turnwise.agents.gateway.core import RefusedError
from turnwise.tasks.core import Json

KEPT = 10_000
"""Answers that are remembered."""


class _Carried(NamedTuple):
    said: Json
    answer: asyncio.Task[Json]


class Resent:
    """The answers to requests, by what they are requests for."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], _Carried] = {}

    async def once(
        self, key: tuple[object, ...], said: Json, carry_out: Callable[[], Awaitable[Json]]
    ) -> Json:
        """The answer to a request: the first one's where it was sent before. What was refused may be sent again.

        Args:
            key: what the request is for.
            said: what it says of it.
            carry_out: does it.

        Raises:
            RefusedError: it says something else than the first one said (409), or cannot be carried out.
        """
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Carried(said, asyncio.ensure_future(_whole(carry_out)))
            known.answer.add_done_callback(lambda answer: self._answered(key, answer))
        elif known.said != said:
            why = "This was asked before, in another way, and is not done twice."
            raise RefusedError(409, "done_otherwise", why)
        return await asyncio.shield(known.answer)

    def _answered(self, key: tuple[object, ...], answer: asyncio.Task[Json]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            self._known.pop(key, None)
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]


async def _whole(carry_out: Callable[[], Awaitable[Json]]) -> Json:
    return await carry_out()
