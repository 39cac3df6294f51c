"""Playing ahead of learning: the groups of later updates are played while the learner works on the present one.

**What is bounded.** Update u (counted from 0) begins when version u of the weights is published: those after u updates.
The *lag* of a token that it trains on is u minus the version that sampled the token. With staleness s every lag is at
most s.

**Why.** A run admits the groups of update u when version u − s is published, at the earliest (:class:`PlayAhead` admits on
:meth:`~PlayAhead.published` and nowhere else). No token is sampled before its group is admitted, published versions never
go down, and an engine samples with the newest published one from the publishing on. So every token of update u has a
version of at least u − s. None has more than u, since version u + 1 comes out of that very update. This does not depend
on how long an episode takes: an update's groups are consumed in order of admission, and the learner, and with it the
version, waits for the oldest. The versions *inside* an episode rise while it is played, by up to s; a weight update in
flight can only make a lag smaller than it would be if the episode had kept the weights that it began with.

At most (s + 1)·B groups, B to an update, are admitted and not yet trained on: those of updates u … u + s while u is the
newest published version. Nothing is discarded for its age, so the episodes that are trained on are those that were
played, long ones too (tests/trainers/test_ahead.py compares their lengths, and shows that a rule which discards fails).

Inside an update the weights move on as well: its last optimizer step is E·M − 1 steps away from its first (E epochs, M
minibatches). So in optimizer steps a token is at most s·E·M + E·M − 1 = (s + 1)·E·M − 1 away from the weights that
sampled it.

With s = 0 all this is the plain loop: play, learn, publish, play.

**Chance.** The tasks and seeds of an update come from (seed, update) alone, so what is half played when a run is killed
is played again with the same seeds. Which version samples which token depends on the clock, though, so an asynchronous
run is not repeated bit for bit by playing; it is by learning again from its log (:mod:`turnwise.trainers.run.relearn`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

from turnwise.errors import RunError
from turnwise.trainers.core import Group

PlayedT = TypeVar("PlayedT")


class PlayAhead(Generic[PlayedT]):
    """Plays the updates of a run, up to ``staleness`` of them ahead; to be entered.

    Args:
        play: plays the groups of an update.
        staleness: s above.
        first: the next update that is learned from.
        updates: of the whole run; none is played beyond.
        on_event: told when an update is admitted and when it was played, with its number.
    """

    def __init__(
        self,
        play: Callable[[int], Awaitable[PlayedT]],
        *,
        staleness: int,
        first: int,
        updates: int,
        on_event: Callable[[str, int], None] | None = None,
    ) -> None:
        self._play, self._on_event = play, on_event or (lambda kind, update: None)
        self.staleness, self._updates = staleness, updates
        self._admitted = first
        self._tasks: dict[int, asyncio.Task[PlayedT]] = {}

    @property
    def admitted(self) -> list[int]:
        """The updates that are admitted and not taken yet, oldest first."""
        return [*self._tasks]

    def published(self, version: int) -> None:
        """Told that the engine samples with these weights from now on: admits what may be played with them."""
        while self._admitted < min(version + self.staleness + 1, self._updates):
            update = self._admitted
            self._tasks[update] = asyncio.get_running_loop().create_task(self._played(update))
            self._admitted += 1
            self._on_event("admitted", update)

    async def take(self, update: int) -> tuple[PlayedT, float]:
        """Return what was played for an update, the oldest that is admitted, and the seconds that it was waited for."""
        began = time.monotonic()
        played = await self._tasks[update]
        del self._tasks[update]
        return played, time.monotonic() - began

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give up what is still being played; a resumed run plays it again."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _played(self, update: int) -> PlayedT:
        played = await self._play(update)
        self._on_event("played", update)
        return played


class Lag(NamedTuple):
    """Versions by which the tokens that an update trained on were behind its own."""

    mean: float
    most: int
    tokens: int


def lag_of(groups: Iterable[Group], update: int) -> Lag:
    """The lags of the tokens that the policy sampled in these groups, which update ``update`` trains on."""
    total = most = tokens = 0
    for group in groups:
        for episode in group:
            for trajectory in episode.trajectories.values():
                for turn in trajectory.turns:
                    reply = turn.reply
                    if not reply.logprobs:  # nobody sampled it
                        continue
                    ends = [*(span.start for span in reply.versions[1:]), len(reply.action_ids)]
                    for span, end in zip(reply.versions, ends, strict=True):
                        total += (update - span.version) * (end - span.start)
                        most = max(most, update - span.version)
                    tokens += len(reply.action_ids)
    return Lag(total / max(1, tokens), most, tokens)


def check_lag(lag: Lag, staleness: int, update: int) -> None:
    """Refuse to learn from tokens that are staler than the recipe allows: the engine named a wrong version.

    Raises:
        RunError: a token's lag is beyond the bound.
    """
    if lag.most > staleness:
        raise RunError(
            f"Update {update + 1} has tokens that were sampled {lag.most} versions ago; scale.staleness is {staleness}.",
            "The engine names other versions than it was given; this is a fault of the engine, or of Turnwise.",
        )
