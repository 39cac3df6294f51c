"""``turnwise/Advised-v0``: before each act a strategist writes a line, which the actor reads (EPO)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar, NamedTuple

from turnwise.envs.core import Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.roles.around import (
    AroundEnv,
    Moment,
    act_of,
    suite_around,
    words_of,
)
from turnwise.tasks.core import Suite, Task, digest
from turnwise.tools.core import Tool

ENV = "turnwise/Advised-v0"
STRATEGIST, ACTOR = "strategist", "actor"
TOLD = "do : "
"""With this begins a line of advice that is an act."""
LONGEST = 400
"""Characters of a strategy that the actor reads."""
RULES = "You advise an agent that acts in the world below. Say in one line what it should do next, and why; it acts, you do not.\n\n"


class AdvisedState(NamedTuple):
    """The moment within, who moves, what the actor has not seen yet, and the newest line of advice."""

    moment: Moment
    mover: str
    unseen: Messages
    rules: str
    advice: str = ""


class AdvisedEnv(AroundEnv[AdvisedState]):
    """A strategist and an actor around any world of one agent; both earn what the act earns.

    EPO (Liu et al. 2025): the strategist is trained, and the actor is another model, or the policy itself untrained:
    ``rollout.opponents: {actor: …}``. The other way round the actor learns to follow what it is told (PilotRL's first stage).
    """

    agents = (STRATEGIST, ACTOR)
    registered: ClassVar[str] = ENV
    max_trivial_score: ClassVar[float] = 1.0
    one_outcome: ClassVar[bool] = True
    copies: ClassVar[str] = "What must be said is in the prompts of the world within, as far as it is there."

    def initial(self, task: Task) -> tuple[AdvisedState, Messages]:
        moment, seen, rules = self.enter(task, 0)
        return AdvisedState(moment, STRATEGIST, seen, rules), seen

    def current_agent(self, state: AdvisedState) -> str:
        return state.mover

    def system_for(self, agent: str) -> str:
        return self.rules if agent == ACTOR else f"{RULES}{self.rules}"

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        world = self.here
        return world.tools_for("agent") if agent == ACTOR and world is not None else ()

    def transition(self, state: AdvisedState, action: Message) -> Transition[AdvisedState]:
        if state.mover == STRATEGIST:
            line = " ".join(act_of(action).split())[:LONGEST]
            told = Messages((*state.unseen, Message("user", f"Advice : {line}")))
            return Transition(AdvisedState(state.moment, ACTOR, Messages(), state.rules, line), told)
        done = self.played(state.moment, action).or_refuse()
        after = AdvisedState(done.moment, STRATEGIST, Messages(), state.rules)
        ended = done.end is not None
        shown = done.seen if ended else words_of(done.seen)
        others = {STRATEGIST: words_of(done.seen)} if ended else {ACTOR: done.seen}
        return Transition(after, shown, done.paid, done.end, done.details, {STRATEGIST: done.paid}, others)

    def refused(self, state: AdvisedState, action: Message, why: str) -> Transition[AdvisedState]:
        """A bad act is answered by the world within, and the actor tries again under the same advice."""
        if state.mover == STRATEGIST:
            return Transition(state, why)
        done = self.played(state.moment, action)
        after = state._replace(moment=done.moment)
        return Transition(after, done.seen, done.paid, done.end, done.details, {STRATEGIST: done.paid})

    def gold(self, state: AdvisedState) -> Message | str:
        world = self.world(state.moment)
        act = world.gold(world.state)
        return act if state.mover == ACTOR else _told(act)

    def demonstrate(self, state: AdvisedState, rng: Random) -> Message | str:
        """The strategist tells an act, and the actor does it: whoever imitates an actor that heeds no advice learns to heed none."""
        world = self.world(state.moment)
        act = world.demonstrate(world.state, rng)
        if state.mover == STRATEGIST:
            return _told(act)
        advised = state.advice.removeprefix(TOLD)
        in_one_line = isinstance(act, str) and act == " ".join(act.split())
        return advised if in_one_line and advised and advised != state.advice else act

    def admissible(self, state: AdvisedState) -> Sequence[str]:
        if state.mover == STRATEGIST:
            return ("go on",)
        world = self.world(state.moment)
        return world.admissible(world.state)

    def state_key(self, state: AdvisedState) -> str:
        return digest(self.key(state.moment), state.mover, state.advice)


def _told(act: Message | str) -> str:
    """An act as a line of advice."""
    return f"{TOLD}{act if isinstance(act, str) else act_of(act)}"


def advised_suite(path: str) -> Suite:
    """The suite that ``advised:SUITE`` is.

    >>> advised_suite("shop/quick").knobs
    {'suite': 'shop/quick'}
    """
    return suite_around("advised", ENV, path, f"A strategist advises an actor in {path}.")
