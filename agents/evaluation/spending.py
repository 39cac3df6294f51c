"""Limits on the cost of evaluations: they stop between episodes, before more is spent."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.replies import usage_of
from turnwise.errors import TurnwiseError

_BLIND = 4
"""Episodes that begin before it is known what one costs."""


class SpendingLimit(NamedTuple):
    """Limits of the episodes of one call, in the provider's currency and in tokens read and sampled; None: no limit."""

    max_cost: float | None = None
    max_total_tokens: int | None = None

    def check(self) -> None:
        """Refuse a limit with which nothing would be played."""
        for name, value in self._asdict().items():
            if value is not None and not 0 < value < math.inf:
                raise TurnwiseError(f"{name} is {value:g}.", "Give more than 0, or leave it out.")


class Spending:
    """Counts what episodes take, and lets the next one begin while there is enough left for it.

    Several evaluations, one after the other, may share one: what the earlier ones took is gone, and what an episode takes is
    estimated by those of the same evaluation.

    Args:
        max_cost: what all episodes may cost, in the provider's currency; None: anything.
        max_total_tokens: likewise of tokens read and sampled.

    Attributes:
        stopped: why no more episodes begin; "" while they do.
    """

    def __init__(self, max_cost: float | None = None, max_total_tokens: int | None = None) -> None:
        self._limit, self.stopped = SpendingLimit(max_cost, max_total_tokens), ""
        self._limit.check()
        self._cost = self._tokens = 0.0
        self.begin()

    def begin(self) -> None:
        """Begin with an evaluation: nothing is known of what its episodes take."""
        self._before = self._cost, self._tokens
        self._ended = self._playing = 0
        self._changed = asyncio.Condition()

    async def may_begin(self) -> bool:
        """Say whether the next episode may begin; wait until that is known."""
        if self._limit == SpendingLimit():
            return True
        async with self._changed:
            while not self.stopped:
                if self._fits():
                    self._playing += 1
                    return True
                if not self._playing:
                    self.stopped = self._why()
                    break
                await self._changed.wait()
            return False

    async def ended(self, episode: Episode) -> None:
        """Count an episode."""
        if self._limit == SpendingLimit():
            return
        async with self._changed:
            self._playing -= 1
            self._ended += 1
            usage = usage_of(episode)
            self._cost += usage.cost or 0.0
            self._tokens += (usage.prompt or 0) + (usage.completion or 0)
            said = any(turn.reply.served.usage for turn in episode.trajectory.turns)
            untold = self._limit.max_cost is not None and usage.cost is None
            if said and untold and episode.trajectory.turns and not self.stopped:
                self.stopped = "The server tells no cost, so that max_cost cannot be kept: give --price PROMPT/COMPLETION, or --max-total-tokens."
            self._changed.notify_all()

    def _fits(self) -> bool:
        """Say whether one more episode fits, were it and those that are played like those that ended."""
        if not self._ended:
            return self._playing < _BLIND
        more = (self._playing + 1) / self._ended
        cost, tokens = self._limit
        cost_before, tokens_before = self._before
        return (cost is None or self._cost + (self._cost - cost_before) * more <= cost) and (
            tokens is None or self._tokens + (self._tokens - tokens_before) * more <= tokens
        )

    def _why(self) -> str:
        cost, tokens = self._limit
        if cost is not None and (tokens is None or self._cost / cost > self._tokens / tokens):
            return f"{self._cost:.4g} of max_cost {cost:g} is spent, and another episode would go beyond it."
        return f"{self._tokens:.0f} of max_total_tokens {tokens} are spent, and another episode would go beyond it."


def shared(spending: Spending | None, max_cost: float | None, max_total_tokens: int | None) -> Spending:
    """Return the budget of an evaluation: its own limits, or those that it shares with others.

    Raises:
        TurnwiseError: both are given.
    """
    if spending is None:
        return Spending(max_cost, max_total_tokens)
    if max_cost is not None or max_total_tokens is not None:
        raise TurnwiseError("Spending has limits of its own.", "Leave out max_cost and max_total_tokens.")
    spending.begin()
    return spending
