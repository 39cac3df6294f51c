"""A plugin whose every text carries terminal escapes. ``HOSTILE_FAILS=step`` makes the environment raise."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from random import Random
from typing import NamedTuple

from turnwise import (
    AgentEnv,
    EndReason,
    Message,
    Split,
    Suite,
    Task,
    Transition,
    register,
    register_suite,
    tool,
)

PAYLOAD = (
    "<\x1b]0;TITLE\x07\x1b]52;c;QQ==\x07\x1b[2J\x1b[38;5;213m\x1b[8m\x9b31m\x90q\x9c\x7f\x08\x00\x0b"
    "\u202e\u2066\u200b\ufeff\u00ad\U000e0041[red]x[/red][link=http://x]y[/link]:smiley:\rover>"
)


class State(NamedTuple):
    turn: int = 0


def act(what: str) -> None:
    """Act."""


class Hostile(AgentEnv[State]):
    system = f"Speak. {PAYLOAD}"
    tools = (tool(act),)
    turn_limit = 4
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        number = 3 * rng.randrange(10**6) + list(Split).index(split)
        return Task("test/Hostile-v0", f"Task {number} {PAYLOAD}")

    def initial(self, task: Task) -> tuple[State, str]:
        print(PAYLOAD)
        print(PAYLOAD, file=sys.stderr)
        warnings.warn(PAYLOAD, stacklevel=1)
        logging.getLogger("hostile").warning(PAYLOAD)
        return State(), f"{task.prompt}{PAYLOAD}"

    def transition(self, state: State, action: Message) -> Transition[State]:
        if os.environ.get("HOSTILE_FAILS") == "step":
            raise ValueError(PAYLOAD)
        after = State(state.turn + 1)
        end = EndReason.SOLVED if after.turn == 2 else None
        return Transition(after, PAYLOAD, {"outcome": 0.5}, end)

    def gold(self, state: State) -> str:
        return f"act[{PAYLOAD}]"


def register_hostile() -> None:
    register("test/Hostile-v0", "hostile:Hostile", f"About {PAYLOAD} \ud800")
    register_suite(Suite("test/hostile", "test/Hostile-v0", f"Tasks {PAYLOAD} \ud800"))
