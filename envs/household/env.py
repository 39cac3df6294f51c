"""``turnwise/Household-v0``: put things where they belong."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import End
from turnwise.envs.household import plans, says
from turnwise.envs.household.acts import do, possible, read, write
from turnwise.envs.household.house import House, HouseState, begin, solved
from turnwise.envs.household.tasks import HouseholdKnobs, draw_task
from turnwise.envs.worlds.commands import Answer, CommandEnv, Kept
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_house = Kept(House)


class HouseholdEnv(CommandEnv[HouseState]):
    """Find things, prepare them, bring them where they belong: ALFWorld's task types in procedural houses."""

    turn_limit = 30
    floor: ClassVar[float] = 0.1
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        f"{objects}_objects": {"objects": objects, "receptacles": 20, "rooms": 3, "turn_limit": 60}
        for objects in (20, 50)
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(HouseholdKnobs, knobs, "household"))

    def begin(self, task: Task) -> HouseState:
        return begin(_house(task))

    def opening(self, state: HouseState) -> tuple[str, str]:
        return says.SYSTEM["full" if state.house.full else "compact"], says.opening(state)

    def obey(self, state: HouseState, words: Sequence[str]) -> Answer[HouseState]:
        house = state.house
        try:
            act = read(state, words)
            if house.slip and self.rng("slip").random() < house.slip:
                return Answer(state, says.refuse(house, "it slips and nothing happens ."))
            after, act = do(state, act)
        except ToolError as error:
            raise ToolError(says.refuse(house, str(error))) from None
        if solved(after):
            return Answer(after, says.refuse(house, "done ."), End.SOLVED)
        return Answer(after, says.tell(after, act))

    def gold(self, state: HouseState) -> str:
        return write(state.house, plans.gold(state))

    def demonstrate(self, state: HouseState, rng: Random) -> str:
        """Looks about at random, takes the wrong thing at times, forgets to clean, heat or cool it."""
        return write(state.house, plans.wander(state, rng))

    def potential(self, state: HouseState) -> float:
        """The share of the way that is behind: 1 − turns still needed / turns needed at first, at least 0."""
        return max(0.0, 1.0 - plans.distance(state) / plans.start_distance(state.house))

    def admissible(self, state: HouseState) -> Sequence[str]:
        return [write(state.house, act) for act in possible(state)]

    def state_key(self, state: HouseState) -> str:
        house, place, at, flags, opened, lit, seen, holding = state
        what = b"%b %d %x %x %x %d %b%b" % (house.key, place, opened, lit, seen, holding, at, flags)
        return hashlib.blake2b(what, digest_size=8).hexdigest()
