"""``turnwise/Refined-v0``: after its attempt an agent accepts it, or cuts it at a turn, from which it goes on anew (Search-R2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import ClassVar, NamedTuple

from turnwise.envs.core import EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.roles.around import (
    AroundEnv,
    Moment,
    PlayedWithin,
    act_of,
    suite_around,
    words_of,
)
from turnwise.tasks.core import Json, Suite, Task, digest
from turnwise.tools.core import Tool, ToolError

ENV = "turnwise/Refined-v0"
OUTCOME = "outcome"
RULES = (
    "After your attempt you are asked whether it is right. Say `accept` if it is. Otherwise say `cut N`, with the number of the turn at which it went wrong: "
    "that turn and what came after it are taken back, and you go on from there, once."
)
ASKED = "accept or cut ?"
_CUT = re.compile(r"cut (\d{1,4})")


class ActorTurn(NamedTuple):
    """A turn of the attempt: the moment before it, what was seen there, and the act."""

    moment: Moment
    seen: str
    act: str


class Held(NamedTuple):
    """The end of an attempt that is yet to be judged, and what was seen then."""

    outcome: float
    end: EndReason
    details: Mapping[str, Json]
    seen: str


class RefinedState(NamedTuple):
    """The moment within, the attempt turn by turn, what is seen, the end that waits, and whether the attempt was cut."""

    moment: Moment
    rules: str
    seen: str
    turns: tuple[ActorTurn, ...] = ()
    held: Held | None = None
    cut: bool = False


class RefinedEnv(AroundEnv[RefinedState]):
    """An attempt at a task of any world of one agent, a look back at it, and a second way from where it is cut; the outcome is of what stands in the end.

    Search-R2: one model is actor, discriminator and trimmer: it accepts its attempt, or names the turn at which it is cut and made anew, at most once; all its choices are
    learned together by the outcome. How the attempt ended is not told before the choice. What was taken back stays in the agent's conversation (ours).
    What single steps earned before a cut stays earned; the outcome of what is taken back does not.
    """

    registered: ClassVar[str] = ENV
    max_trivial_score: ClassVar[float] = 1.0
    copies: ClassVar[str] = "What must be said is in the prompts of the world within, as far as it is there."

    def initial(self, task: Task) -> tuple[RefinedState, Messages]:
        moment, seen, rules = self.enter(task, 0)
        return RefinedState(moment, rules, words_of(seen)), seen

    def system_for(self, agent: str) -> str:
        return f"{self.rules}\n\n{RULES}".strip()

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        world = self.here
        return () if world is None else world.tools_for("agent")

    def transition(self, state: RefinedState, action: Message) -> Transition[RefinedState]:
        if state.held is not None:
            return self._refined(state, state.held, " ".join(act_of(action).lower().split()))
        return self._acted(state, action, self.played(state.moment, action).or_refuse())

    def refused(self, state: RefinedState, action: Message, why: str) -> Transition[RefinedState]:
        """A bad act is answered by the world within; a look back that says neither is asked for again."""
        if state.held is not None:
            return Transition(state, why)
        return self._acted(state, action, self.played(state.moment, action))

    def _acted(self, state: RefinedState, action: Message, done: PlayedWithin) -> Transition[RefinedState]:
        turns = (*state.turns, ActorTurn(state.moment, state.seen, act_of(action)))
        after = state._replace(moment=done.moment, turns=turns, seen=words_of(done.seen))
        if done.end is None:
            return Transition(after, done.seen, done.paid, None, done.details)
        outcome = done.paid.get(OUTCOME, 0.0)
        if state.cut:
            return Transition(after, done.seen, done.paid, done.end, done.details)
        paid = {name: worth for name, worth in done.paid.items() if name != OUTCOME}
        after = after._replace(held=Held(outcome, done.end, done.details, words_of(done.seen)))
        answers = [replace(one, content="done .") for one in done.seen if one.role == "tool"]
        read = Messages((*answers, Message("user", f"Your attempt :\n{told(turns)}\n\n{ASKED}")))
        return Transition(after, read, paid, None, {})

    def _refined(self, state: RefinedState, held: Held, said: str) -> Transition[RefinedState]:
        """The attempt is accepted, or cut.

        Raises:
            ToolError: it says neither, or names no turn of the attempt.
        """
        if said == "accept":
            return Transition(state, held.seen, {OUTCOME: held.outcome}, held.end, held.details)
        found = _CUT.fullmatch(said)
        number = int(found[1]) if found else 0
        if not 1 <= number <= len(state.turns):
            raise ToolError(f"say accept , or cut and a turn from 1 to {len(state.turns)} .")
        back = state.turns[number - 1]
        after = RefinedState(back.moment, state.rules, back.seen, state.turns[: number - 1], None, cut=True)
        line = (
            f"Turn {number} of yours and what came after it are taken back . Go on from here :\n{back.seen}"
        )
        return Transition(after, Messages((Message("user", line),)))

    def gold(self, state: RefinedState) -> Message | str:
        if state.held is not None:
            return "accept" if state.held.outcome > 0 else "cut 1"
        world = self.world(state.moment)
        return world.gold(world.state)

    def demonstrate(self, state: RefinedState, rng: Random) -> Message | str:
        if state.held is not None:
            return self.gold(state)
        world = self.world(state.moment)
        return world.demonstrate(world.state, rng)

    def admissible(self, state: RefinedState) -> Sequence[str]:
        if state.held is not None:
            return ("accept", *(f"cut {n}" for n in range(1, len(state.turns) + 1)))
        world = self.world(state.moment)
        return world.admissible(world.state)

    def state_key(self, state: RefinedState) -> str:
        return digest(
            self.key(state.moment), state.held is None, state.cut, [turn.act for turn in state.turns]
        )


def told(turns: Sequence[ActorTurn]) -> str:
    """The acts of an attempt, by number."""
    return "\n".join(f"{n} > {turn.act}" for n, turn in enumerate(turns, 1))


def refined_suite(path: str) -> Suite:
    """The suite that ``refined:SUITE`` is.

    >>> refined_suite("shop/quick").knobs
    {'suite': 'shop/quick'}
    """
    return suite_around(
        "refined", ENV, path, f"Attempts at {path} are accepted, or cut where they went wrong and made anew."
    )
