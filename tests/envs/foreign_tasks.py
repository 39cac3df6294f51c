"""The stand-in package as an environment, in a module of its own: the checker starts another process that imports it."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import ClassVar

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.envs.foreign.live import LiveWorld, WorldProgram
from turnwise.envs.replaying import WorldPool
from turnwise.tasks.core import Json, Split, Task


class StandIn(ForeignEnv):
    """Find a number in a process with an interpreter of its own."""

    side = Path(__file__).with_name("foreign_side.py")
    pool: ClassVar[WorldPool[LiveWorld]] = WorldPool()
    deadline = 3.0
    turn_limit = 6

    @classmethod
    def program(cls) -> WorldProgram:
        return WorldProgram(sys.executable, str(cls.side), 60.0, cls.deadline)

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        number = 3 * rng.randrange(1000) + list(Split).index(split) + 10
        return Task("test/StandIn-v0", "a number", {"number": number, **knobs})


class StandInPair(StandIn):
    """The same, with a partner who knows the number."""

    agents = ("agent", "partner")
