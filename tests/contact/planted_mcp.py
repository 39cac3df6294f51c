"""Faults of MCP servers: what is an answer counts, and what is none is infrastructure."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from blame import Fault

import turnwise
from turnwise import History, Message, Split, Suite, Task, ToolCall
from turnwise.envs.mcp.env import McpEnv
from turnwise.tools.mcp_client import StdioServer

SERVER = Path(__file__).with_name("faulty_mcp.py")


class Notes(McpEnv):
    """Note a text, and finish."""

    timeout = 1.5
    turn_limit = 4

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Any) -> Task:
        return Task(
            env_of(cls), "Note x, then finish.", {"n": 3 * rng.randrange(10**6) + list(Split).index(split)}
        )

    def judge(self, task: Task, folder: Path, answer: str) -> float:
        return float(answer == "right")

    def plan(self, task: Task) -> Sequence[ToolCall]:
        return (ToolCall("note", {"text": "x"}), ToolCall("finish", {"answer": "right"}))


ANSWERS = {  # what the policy must have heard
    "error of the tool": "no paper",
    "invalid params": "refused",
    "no such tool": "refused",
    "internal error": "refused",
    "own code": "refused",
    "code of an application": "refused",
    "schema without structure": "noted",
    "empty": "nothing",
    "chatter": "noted",
    "other words": "",
}
BROKEN = ("dies", "hangs", "bytes", "other id")
FAULTS = [
    *(Fault(how, "agent", how) for how in ANSWERS),
    *(Fault(how, "server", how, "faulty_mcp|MCP|server|python") for how in BROKEN),
]
_MADE = {
    how: type(f"Notes{n}", (Notes,), {"server": StdioServer((sys.executable, "-S", str(SERVER), how))})
    for n, how in enumerate([*ANSWERS, *BROKEN])
}
globals().update({made.__name__: made for made in _MADE.values()})


def env_of(kind: type) -> str:
    """The environment's id."""
    return f"contact/{kind.__name__}-v0"


def suite_of(fault: Fault) -> str:
    """The suite whose server has this fault."""
    kind = _MADE[fault.how]
    turnwise.register(env_of(kind), f"{__file__}:{kind.__name__}", "Notes of a faulty server.")
    turnwise.register_suite(Suite(f"contact/{kind.__name__}", env_of(kind), "Notes of a faulty server."))
    return f"contact/{kind.__name__}"


def agent(history: History) -> Message:
    """Notes once and finishes wrongly: a failure of its own, if it hears an answer."""
    calls = ("note", {"text": "x"}), ("finish", {"answer": "wrong"})
    name, given = calls[min(len(history.turns), 1)]
    return Message("assistant", "", (ToolCall(name, given, f"c{len(history.turns)}"),))
