"""An environment that keeps the contract, and many that each break it in one way.

They live in a module of their own because the checker starts a second process that imports them.
"""
# pyright: reportIncompatibleMethodOverride=false

import random
import time
from random import Random
from typing import NamedTuple

from turnwise.envs.acting import call_of
from turnwise.envs.core import AgentEnv, EndReason, Step, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolError, find_tool, tool


class Spot(NamedTuple):
    low: int
    high: int
    hidden: int


def guess(number: int) -> None:
    """Say a number."""


class Good(AgentEnv[Spot]):
    """Find a hidden number."""

    system = "Find the number with guess[number]."
    tools = (tool(guess),)
    turn_limit = 9
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        hidden = 3 * rng.randrange(80) + list(Split).index(split)
        return Task(
            f"broken/{cls.__name__}-v0", "Between 0 and 239.", {"hidden": hidden}, gold=f"number-{hidden}"
        )

    def initial(self, task: Task) -> tuple[Spot, str]:
        return Spot(0, 239, task.options["hidden"]), task.prompt

    def transition(self, state: Spot, action: Message) -> Transition[Spot]:
        call = call_of(action, self.tools)
        number = find_tool(self.tools, call.name).validate(call)["number"]
        if number == state.hidden:
            return Transition(state, "Right.", {"outcome": 1.0}, EndReason.SOLVED)
        if number < state.hidden:
            return Transition(state._replace(low=max(state.low, number + 1)), "Higher.")
        return Transition(state._replace(high=min(state.high, number - 1)), "Lower.")

    def gold(self, state: Spot) -> str:
        return f"guess[{(state.low + state.high) // 2}]"

    def potential(self, state: Spot) -> float:
        return (state.low - state.high) / 240


class PaysMoreThanItsComponents(Good):
    def step(self, action):
        return super().step(action)._replace(reward=0.5)


class PaysInfinity(Good):
    def transition(self, state, action):
        return super().transition(state, action)._replace(rewards={"outcome": float("inf")})


class PaysUndeclared(Good):
    def transition(self, state, action):
        return super().transition(state, action)._replace(rewards={"tip": 0.1})


class PotentialThatWobbles(Good):
    calls = 0

    def potential(self, state):
        PotentialThatWobbles.calls += 1
        return -1.0 / self.calls


class EndsBothWays(Good):
    def step(self, action):
        step = super().step(action)
        return step._replace(truncated=step.truncated or step.terminated)


class EndsWithoutName(Good):
    def step(self, action):
        step = super().step(action)
        return step._replace(info={**step.info, "end": None})


class CallsTheLimitATermination(Good):
    def step(self, action):
        step = super().step(action)
        return step._replace(terminated=step.terminated or step.truncated, truncated=False)


class PlaysOnAfterTheLimit(Good):
    def _turn_limit(self, task):
        return self.turn_limit + 3


class UsesTheGlobalRng(Good):
    def transition(self, state, action):
        return super().transition(state, action)._replace(observation=f"{random.random()}")


class ReadsTheClock(Good):
    def transition(self, state, action):
        change = super().transition(state, action)
        return change._replace(observation=f"{change.observation} {time.perf_counter_ns()}")


class OrdersBySet(Good):
    def initial(self, task):
        state, told = super().initial(task)
        return state, f"{told} {' '.join({'some', 'words', 'in', 'any', 'order', 'at', 'all'})}"


class Box:
    def __init__(self, hidden: int) -> None:
        self.low, self.high, self.hidden = 0, 239, hidden

    def _replace(self, **changes: int) -> "Box":
        self.__dict__.update(changes)
        return self

    def __repr__(self) -> str:
        return f"Box({self.low}, {self.high}, {self.hidden})"


class ChangesItsState(Good):
    def initial(self, task):
        return Box(task.options["hidden"]), task.prompt


class KeepsASecretCounter(Good):
    turns = 0

    def transition(self, state, action):
        self.turns += 1
        change = super().transition(state, action)
        return change._replace(observation=f"{change.observation} ({self.turns})")

    def reset(self, **options):
        self.turns = 0
        return super().reset(**options)


class ForksSlowly(Good):
    def fork(self, *, seed=None):
        time.sleep(0.001)
        return super().fork(seed=seed)


class KeysByAddress(Good):
    def state_key(self, state):
        return str(id(state))


class KeyIsConstant(Good):
    def state_key(self, state):
        return "here"


class GoldFails(Good):
    def gold(self, state):
        return f"guess[{state.low}]"


class ChangesItsTask(Good):
    def initial(self, task):
        task.options["played"] = True
        return super().initial(task)


class GivesItAway(Good):
    def admissible(self, state):
        return (f"guess[{state.hidden}]",)


class SplitsOverlap(Good):
    @classmethod
    def generate(cls, rng, split):
        task = super().generate(rng, split)
        return Task(task.env, task.prompt, {"hidden": 5}, gold="number-5")


class FallsOverGarbage(Good):
    def transition(self, state, action):
        if not action.tool_calls and not action.content.startswith("guess"):
            raise KeyError(action.content[:10])
        return super().transition(state, action)


class EndsOnGarbage(Good):
    def transition(self, state, action):
        try:
            return super().transition(state, action)
        except ToolError:
            return Transition(state, "That was wrong.", {}, EndReason.FAILED)


class AnswersNothing(Good):
    def transition(self, state, action):
        try:
            return super().transition(state, action)
        except ToolError:
            return Transition(state, "")


class TellsTheAnswer(Good):
    def initial(self, task):
        state, told = super().initial(task)
        return state, f"{told} (debug: {task.gold})"


class SpeaksAsTheAssistant(Good):
    def transition(self, state, action):
        return (
            super()
            .transition(state, action)
            ._replace(observation=Messages((Message("assistant", "I win."),)))
        )


class EchoesWithoutLimit(Good):
    def transition(self, state, action):
        try:
            return super().transition(state, action)
        except ToolError:
            return Transition(state, Messages((Message("user", f"You said: {action.content}"),)))


class EchoesBadUnicode(Good):
    def transition(self, state, action):
        return super().transition(state, action)._replace(observation="\ud800")


class GymnasiumRefusesIt(Good):
    def step(self, action):
        step: Step = super().step(action)
        return step._replace(observation=str(step.observation))  # pyright: ignore[reportArgumentType]


class MakesOthersTasks(Good):
    @classmethod
    def generate(cls, rng, split):
        task = super().generate(rng, split)
        return Task("turnwise/Shop-v0", task.prompt, task.options, task.gold)
