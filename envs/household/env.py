"""``turnwise/Household-v0``: put things where they belong."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import ClassVar

from turnwise.envs.core import EndReason, RewardKind, Transition
from turnwise.envs.household import render, solver
from turnwise.envs.household.actions import FORMS, do, possible, read, write
from turnwise.envs.household.knobs import HouseholdKnobs
from turnwise.envs.household.orders import keep, needed
from turnwise.envs.household.state import NOTHING, House, HouseState, begin, solved
from turnwise.envs.household.tasks import draw_task, without_thing
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import CommandAnswer, CommandEnv, WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.meta_reasoning import BLANK, PAID, fitting_tag, stumble, tag_of, think
from turnwise.envs.worlds.one_command import Forms, spoken
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_house = WorldCache(House)


class HouseholdEnv(CommandEnv[HouseState]):
    """Find things, prepare them, bring them where they belong: ALFWorld's task types in procedural houses."""

    turn_limit = 30
    reward_components = MappingProxyType(
        {
            **CommandEnv.reward_components,
            "lure": RewardKind.STEP,
        }  # a suite's knob; paid at once, and it costs later
    )
    max_trivial_score: ClassVar[float] = 0.1
    forms: ClassVar[Forms | None] = FORMS
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        f"{objects}_objects": {"objects": objects, "receptacles": 20, "rooms": 3, "turn_limit": 60}
        for objects in (20, 50)
    }

    def __init__(
        self,
        *,
        shaping: float = 0.0,
        grounding: float = 0.0,
        meta: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        """``meta`` is paid for well-placed meta-reasoning tags, by RLVMR's rules (envs/worlds/meta_reasoning.py)."""
        super().__init__(shaping=shaping, grounding=grounding, render_mode=render_mode)
        self.meta = meta
        if meta:
            self.reward_components = {**self.reward_components, **dict.fromkeys(PAID, RewardKind.STEP)}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(HouseholdKnobs, knobs, "household"))

    @classmethod
    def impossible(cls, task: Task, rng: Random) -> Task | None:
        """The same house, whose first goal asks for a kind of thing that is not in it."""
        return without_thing(task, rng)

    def begin(self, task: Task) -> HouseState:
        return begin(_house(task))

    def opening(self, state: HouseState) -> tuple[str, str]:
        system = render.SYSTEM["full" if state.house.full else "compact"]
        return f"{system}{render.TAGS}" if self.meta else system, render.opening(state)

    def obey(self, state: HouseState, words: Sequence[str]) -> CommandAnswer[HouseState]:
        house = state.house
        try:
            act = read(state, words)
            if house.slip and self.rng("slip").random() < house.slip:
                return CommandAnswer(state, render.refuse(house, "it slips and nothing happens ."))
            after, act = do(state, act)
        except ToolError as error:
            raise ToolError(render.refuse(house, str(error))) from None
        if house.orders:
            after, told = keep(after)
            if solved(after):
                return CommandAnswer(after, render.refuse(house, "done ."), EndReason.SOLVED)
            return CommandAnswer(after, "\n".join(filter(None, (render.tell(after, act), told))))
        # A goal is reached by putting something down, or by seeing it under a lamp.
        if (after.at is not state.at or after.seen != state.seen) and solved(after):
            return CommandAnswer(after, render.refuse(house, "done ."), EndReason.SOLVED)
        return CommandAnswer(after, render.tell(after, act))

    def transition(self, state: HouseState, action: Message) -> Transition[HouseState]:
        if not self.meta:
            return self._lured(state, super().transition(state, action))
        change = super().transition(state, action)
        meant = write(state.house, read(state, self.heard(state, action)))  # the same however it is worded
        said = " ".join(spoken(Message("assistant", meant)))
        solves, tag = change.end is EndReason.SOLVED, tag_of(action.content)
        mind, earned = think(state.mind, tag, said, solved=solves, weight=self.meta)
        after = change.state._replace(mind=mind)
        return change._replace(state=after, rewards={**change.rewards, **earned})

    def _lured(self, state: HouseState, change: Transition[HouseState]) -> Transition[HouseState]:
        """A transition with what is paid at once for throwing something away."""
        lure, house = float(self.task.options.get("lure", 0.0)), state.house
        if not lure or state.holding == NOTHING or change.state.holding != NOTHING:
            return change
        if house.props[state.place].does != "trash":
            return change
        return change._replace(rewards={**change.rewards, "lure": lure})

    def refused(self, state: HouseState, action: Message, why: str) -> Transition[HouseState]:
        """An answer; where meta-reasoning is paid for, it is remembered what was refused."""
        if self.meta:
            said = ""
            with contextlib.suppress(ToolError):
                said = " ".join(self.heard(state, action))
            state = state._replace(mind=stumble(state.mind, said))
        return Transition(state, why)

    def gold(self, state: HouseState) -> str:
        return self._thought(state, write(state.house, solver.gold(state)))

    def needs(self, state: HouseState) -> Sequence[str]:
        return needed(state)

    def demonstrate(self, state: HouseState, rng: Random) -> str:
        """Searches place after place, takes the wrong thing at times, forgets to clean, heat or cool it."""
        end = (
            "" if state.house.full else " ."
        )  # so that a number stands before a space, as in all that is told
        return self._thought(state, write(state.house, solver.demonstrate(state, rng)) + end)

    def _thought(self, state: HouseState, command: str) -> str:
        """A command, after a tag that suits it where such tags are paid for."""
        if not self.meta:
            return command
        tag = fitting_tag(state.mind, " ".join(spoken(Message("assistant", command))))
        return f"<{tag}>{state.house.task.prompt if tag == 'planning' else tag}</{tag}> {command}"

    def potential(self, state: HouseState) -> float:
        """The share of the way that is behind: 1 − turns still needed / turns needed at first, at least 0."""
        return max(0.0, 1.0 - solver.distance(state) / solver.start_distance(state.house))

    def admissible(self, state: HouseState) -> Sequence[str]:
        return [write(state.house, act) for act in possible(state)]

    def looked_at(self, state: HouseState) -> str:
        return self.state_key(state._replace(mind=BLANK))  # to have thought is no new look

    def state_key(self, state: HouseState) -> str:
        house, place, at, flags, opened, lit, seen, holding, mind, served = state
        what = b"%b %d %x %x %x %d %b%b" % (house.key, place, opened, lit, seen, holding, at, flags)
        if house.orders:
            what += b" %d" % served
        if mind is not BLANK:
            what += repr((sorted(mind.tried), *mind[1:])).encode()
        return hashlib.blake2b(what, digest_size=8).hexdigest()
