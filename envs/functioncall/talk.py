"""A task's conversation as the environment plays it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.worlds.commands import Kept
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import Tool, ToolCall, ToolSpec, tool
from turnwise.tools.schema import tool_of_schema


def renew_session() -> str:
    """Begin a new session when the old one has expired."""
    return "renewed"


_RENEW = tool(renew_session)


class Wanted(NamedTuple):
    """A call that a request wants."""

    call: ToolCall
    gives: str  # an id that it finds, or ""
    after: frozenset[int]
    fails: str  # how its first attempt fails, or ""
    reads: bool


class Round(NamedTuple):
    """A request."""

    say: str
    wanted: tuple[Wanted, ...]
    ask: Mapping[str, Json] | None  # what is told only when asked for


class Talk(NamedTuple):
    """A task's conversation."""

    tools: tuple[Tool, ...]
    rounds: tuple[Round, ...]
    defaults: Mapping[str, Mapping[str, Json]]  # function → parameter → what leaving it out means


def _talk(task: Task) -> Talk:
    """The conversation of a task."""
    tools = tuple(
        tool_of_schema(ToolSpec(one["name"], one["about"], one["parameters"]), _nothing, own=True)
        for one in task.options["functions"]
    )
    rounds = tuple(
        Round(
            one["say"],
            tuple(
                Wanted(
                    ToolCall(call["name"], call["arguments"]),
                    call["gives"],
                    frozenset(call["after"]),
                    call["fails"],
                    call["reads"],
                )
                for call in one["calls"]
            ),
            one["ask"],
        )
        for one in task.options["rounds"]
    )
    defaults = {
        made.spec.name: {
            name: field["default"]
            for name, field in made.spec.parameters["properties"].items()
            if "default" in field
        }
        for made in tools
    }
    return Talk((*tools, _RENEW), rounds, defaults)


def _nothing(**_: Json) -> None:
    """Functions of this world do nothing by themselves."""


talk_of: Kept[Talk] = Kept(_talk)
"""The conversation of a task, built once."""
