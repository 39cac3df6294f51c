"""A small world for the agents' tests, and a policy of adjustable skill that plays it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import NamedTuple

import pytest

from turnwise.agents.core import PREVIOUS, ROOT, Episode, History, Reply, VersionSpan
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register, register_suite, suite_tasks
from turnwise.tasks.core import Json, Split, Suite, Task, derive_rng
from turnwise.tools.core import ToolCall, ToolError, tool


class Range(NamedTuple):
    secret: int
    low: int
    high: int


def guess(number: int) -> None:
    """Guess the number."""


class GuessEnv(AgentEnv[Range]):
    """Find a number of 1 … 16 from "higher" and "lower"; one guess costs 0.01."""

    system = "Guess the number."
    tools = (tool(guess),)
    reward_components = MappingProxyType({"outcome": RewardKind.OUTCOME, "cost": RewardKind.COST})
    turn_limit = 6
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        secret = rng.randint(1, 16)
        options = {"secret": secret, "salt": f"{split}-{rng.getrandbits(32)}"}
        return Task("turnwise-test/Guess-v0", "Which number from 1 to 16?", options)

    def initial(self, task: Task) -> tuple[Range, str]:
        return Range(task.options["secret"], 1, 16), f"{task.prompt} <Ünïcode & markup>"

    def transition(self, state: Range, action: Message) -> Transition[Range]:
        text = action.tool_calls[0].arguments["number"] if action.tool_calls else action.content
        if not re.fullmatch(r"\d+", str(text)):
            raise ToolError("Say a number.")
        said, mood = int(text), self.rng("mood").choice(["Hm", "Well", "No"])
        if said == state.secret:
            return Transition(state, "Yes!", {"outcome": 1.0, "cost": -0.01}, EndReason.SOLVED)
        if said < state.secret:
            next_state = state._replace(low=max(state.low, said + 1))
            return Transition(next_state, f"{mood}, higher.", {"cost": -0.01}, details={"left": 16 - said})
        return Transition(state._replace(high=min(state.high, said - 1)), f"{mood}, lower.", {"cost": -0.01})

    def potential(self, state: Range) -> float:
        return 1 - (state.high - state.low) / 16

    def gold(self, state: Range) -> str:
        return str(state.secret)


@dataclass
class Player:
    """Halves the range with probability ``skill`` and guesses blindly otherwise, noting fake tokens.

    With ``broken_on`` it fails for every task whose hash is divisible by that.
    """

    skill: float
    broken: bool = False
    broken_on: int = 0
    name: str = "player"
    version: int = 3

    async def act(self, history: History) -> Reply:
        if self.broken or (self.broken_on and int(history.task.id, 16) % self.broken_on == 0):
            raise ConnectionError("the engine is gone")
        rng = derive_rng("player", history.task.id, history.seed, len(history.turns), self.skill)
        state = history.env.state
        number = (state.low + state.high) // 2 if rng.random() < self.skill else rng.randint(1, 16)
        ids = (number, 99)
        logprobs = (-rng.random(), -1e-300)
        if rng.random() < 0.5:
            message = Message("assistant", "", (ToolCall("guess", {"number": number}, "call_0"),))
        else:
            message = Message("assistant", str(number))
        return Reply(
            message,
            (1, 2, 3),
            ids,
            logprobs,
            (VersionSpan(0, self.version),),
            PREVIOUS if history.turns else ROOT,
        )

    def close(self) -> None:
        pass


SUITE = Suite("test/guess", "turnwise-test/Guess-v0", "guess a number")


@pytest.fixture
def suite() -> Suite:
    register("turnwise-test/Guess-v0", f"{__name__}:GuessEnv", "guess a number")
    register_suite(SUITE)
    return SUITE


@pytest.fixture
def player() -> type[Player]:
    return Player


@pytest.fixture
def episodes(suite: Suite) -> list[Episode]:
    """Twelve episodes of a middling player, with and without tool calls."""
    tasks = suite_tasks(suite, Split.TEST, 12)
    return run_episodes([Request(task, 2**52 + index) for index, task in enumerate(tasks)], Player(0.6))
