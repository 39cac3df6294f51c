"""Environments as published benchmarks are: nobody knows a solution, one turn, any wrong text ends it.

A module of its own, because the checker and workers start other processes that import it.
"""
# pyright: reportIncompatibleMethodOverride=false

import os
from random import Random
from typing import NamedTuple

from turnwise.envs.acting import call_of
from turnwise.envs.core import AgentEnv, EndReason, ForkCost, Transition
from turnwise.envs.messages import Message
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import find_tool, tool


class Asked(NamedTuple):
    right: str


class OneAnswer(AgentEnv[Asked]):
    """Add two numbers: one turn, no tools, and a wrong answer ends the episode."""

    system = "Say the sum."
    turn_limit = 1
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        a, b = 3 * rng.randrange(1000) + list(Split).index(split), rng.randrange(1000)
        return Task(f"goldless/{cls.__name__}-v0", f"{a} + {b}", {"sum": a + b})

    def initial(self, task: Task) -> tuple[Asked, str]:
        return Asked(str(task.options["sum"])), task.prompt

    def transition(self, state: Asked, action: Message) -> Transition[Asked]:
        right = action.content.strip() == state.right
        end = EndReason.SOLVED if right else EndReason.FAILED
        return Transition(state, "over", {"outcome": float(right)}, end)

    def gold(self, state: Asked) -> str:
        return state.right


class Place(NamedTuple):
    at: int = 0
    seen: tuple[int, ...] = ()


def go(to: int) -> None:
    """Go to a room."""


class Rooms(AgentEnv[Place]):
    """Find the hidden room; nobody knows where it is, and going back means walking again."""

    system = "Find the room with go[number]."
    tools = (tool(go),)
    gold_known = False
    fork_cost = ForkCost.REPLAY
    turn_limit = 8
    max_trivial_score = 0.4
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        room = 3 * rng.randrange(60) + list(Split).index(split)
        return Task(f"goldless/{cls.__name__}-v0", "There are rooms 0 to 179.", {"room": room})

    def initial(self, task: Task) -> tuple[Place, str]:
        return Place(), task.prompt

    def admissible(self, state: Place) -> tuple[str, ...]:
        return tuple(f"go[{number}]" for number in range(180))

    def transition(self, state: Place, action: Message) -> Transition[Place]:
        to = find_tool(self.tools, "go").validate(call_of(action, self.tools))["to"]
        after = Place(to, (*state.seen, to))
        if to == self.task.options["room"]:
            return Transition(after, "Here it is.", {"outcome": 1.0}, EndReason.SOLVED)
        return Transition(after, "An empty room.")


class RoomsThatPayTwice(Rooms):
    """Break E6 without gold: the first word solves it."""

    def transition(self, state: Place, action: Message) -> Transition[Place]:
        return Transition(state, "Well said.", {"outcome": 1.0}, EndReason.SOLVED)


class RecordedRooms(Rooms):
    """Rooms whose episode was recorded once."""

    def recorded(self, task: Task) -> tuple[str, ...]:
        return ("go[7]", f"go[{task.options['room']}]")


class Talker(Rooms):
    """Has words and tools: words alone end a turn's work, by the benchmark's own rule."""

    def transition(self, state: Place, action: Message) -> Transition[Place]:
        if not action.tool_calls and "[" not in action.content and "<" not in action.content:
            return Transition(state, "You said your answer.", {"outcome": 0.0}, EndReason.FAILED)
        return super().transition(state, action)


class OneCall(OneAnswer):
    """One call is the answer, and wrong arguments are a wrong one."""

    tools = (tool(go),)
    turn_limit = 2

    def transition(self, state: Asked, action: Message) -> Transition[Asked]:
        call = call_of(action, self.tools)
        find_tool(self.tools, call.name)
        right = str(call.arguments.get("to")) == state.right
        end = EndReason.SOLVED if right else EndReason.FAILED
        return Transition(state, "over", {"outcome": float(right)}, end)

    def gold(self, state: Asked) -> str:
        return f"go[{state.right}]"


class DeclaredOneCall(OneCall):
    """The same, declared."""

    calls_end = "the first call is the answer"


class Wanderer(OneAnswer):
    """Has another solution in each process."""

    turn_limit = 2
    copies = "the sum may be said with any number of spaces"

    def gold(self, state: Asked) -> str:
        return state.right + " " * (os.getpid() % 1000)


class DeclaredWanderer(Wanderer):
    """The same, declared."""

    gold_varies = "it is drawn anew in each process"


class DeclaredTalker(Talker):
    """The same, declared."""

    words_end = "words without a call are the final answer"


class PaidTalker(Rooms):
    """Words end the episode and are always paid for, which only E6 can call wrong."""

    words_end = "words without a call are the final answer"

    def transition(self, state: Place, action: Message) -> Transition[Place]:
        if not action.tool_calls and "[" not in action.content and "<" not in action.content:
            return Transition(state, "Well said.", {"outcome": 1.0}, EndReason.SOLVED)
        return super().transition(state, action)
