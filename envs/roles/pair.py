"""``turnwise/Pair-v0``: a pioneer attempts the task, then an observer who has read that attempts it anew (CORY)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, NamedTuple

from turnwise.envs.core import EndReason, RewardKind, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.roles.around import (
    AroundEnv,
    Moment,
    PlayedWithin,
    act_of,
    suite_around,
    words_of,
)
from turnwise.tasks.core import Suite, Task, digest
from turnwise.tools.core import Tool

ENV = "turnwise/Pair-v0"
OBSERVER, PIONEER = "observer", "pioneer"
PARTNER = "partner"
"""The component of reward that is the other's outcome."""
LONGEST = 4000
"""Characters of an attempt that the observer reads: its end."""


class PairState(NamedTuple):
    """The moment within, who moves, the pioneer's attempt line by line, and what it earned as the outcome."""

    moment: Moment
    rules: str
    mover: str = PIONEER
    attempt: tuple[str, ...] = ()
    outcome: float = 0.0


class PairEnv(AroundEnv[PairState]):
    """Two attempts at one task, of which the second reads the first; both earn the sum of both outcomes.

    CORY (Ma et al. 2024): r₁ + r₂ for the pioneer and for the observer, who is the one that is evaluated: each has its own outcome, and that of the other as the
    component ``partner``. The world is the same in both attempts, its chance too.
    """

    agents = (OBSERVER, PIONEER)
    registered: ClassVar[str] = ENV
    reward_components: Mapping[str, RewardKind] = {"outcome": RewardKind.OUTCOME, PARTNER: RewardKind.STEP}
    max_trivial_score: ClassVar[float] = 1.0
    copies: ClassVar[str] = "What must be said is in the prompts of the world within, as far as it is there."

    def initial(self, task: Task) -> tuple[PairState, Messages]:
        moment, seen, rules = self.enter(task, 0)
        return PairState(moment, rules), seen

    def current_agent(self, state: PairState) -> str:
        return state.mover

    def system_for(self, agent: str) -> str:
        return self.rules

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        world = self.here
        return () if world is None else world.tools_for("agent")

    def transition(self, state: PairState, action: Message) -> Transition[PairState]:
        return self._carried_out(state, action, self.played(state.moment, action).or_refuse())

    def refused(self, state: PairState, action: Message, why: str) -> Transition[PairState]:
        """A bad act is answered by the world within."""
        return self._carried_out(state, action, self.played(state.moment, action))

    def _carried_out(self, state: PairState, action: Message, done: PlayedWithin) -> Transition[PairState]:
        outcome = done.paid.get("outcome", 0.0)
        if state.mover == PIONEER:
            lines = (*state.attempt, f"> {act_of(action)}", words_of(done.seen))
            after = state._replace(moment=done.moment, attempt=lines, outcome=state.outcome + outcome)
            if done.end is not None:
                return self._handed_over(after, done, done.end)
            return Transition(after, done.seen, done.paid, None, done.details)
        after = state._replace(moment=done.moment)
        if done.end is None:
            return Transition(after, done.seen, done.paid, None, done.details)
        both = {**done.paid, PARTNER: state.outcome}
        return Transition(after, done.seen, both, done.end, done.details, {PIONEER: {PARTNER: outcome}})

    def _handed_over(self, state: PairState, done: PlayedWithin, end: EndReason) -> Transition[PairState]:
        """The pioneer's attempt ends; the observer begins where it began, and reads it."""
        first = self.enter(self.task, self.now.seed)
        read = "\n".join(state.attempt)[-LONGEST:]
        told = Message("user", f"Another agent has tried this :\n{read}\n\nNow it is your turn .")
        after, shown = state._replace(moment=first.moment, mover=OBSERVER), Messages((*first.seen, told))
        details = {"pioneer": str(end.value)}
        return Transition(after, shown, done.paid, None, details, messages_to={PIONEER: done.seen})

    def gold(self, state: PairState) -> Message | str:
        world = self.world(state.moment)
        return world.gold(world.state)

    def demonstrate(self, state: PairState, rng: Random) -> Message | str:
        world = self.world(state.moment)
        return world.demonstrate(world.state, rng)

    def admissible(self, state: PairState) -> Sequence[str]:
        world = self.world(state.moment)
        return world.admissible(world.state)

    def state_key(self, state: PairState) -> str:
        return digest(self.key(state.moment), state.mover, [*state.attempt])


def pair_suite(path: str) -> Suite:
    """The suite that ``pair:SUITE`` is.

    >>> pair_suite("shop/quick").name
    'pair:shop/quick'
    """
    return suite_around("pair", ENV, path, f"A pioneer and an observer attempt {path} one after the other.")
