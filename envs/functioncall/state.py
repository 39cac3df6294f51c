"""A task's conversation as the environment plays it, and where it is."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.functioncall.data import CallData, carry_out
from turnwise.envs.functioncall.interfaces import Case, DataFunction, as_tool, functions, to_theirs, written
from turnwise.envs.functioncall.reward import Nearness
from turnwise.envs.worlds.commands import WorldCache
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import Tool, ToolCall, tool

RENEW = "renew session"
RENEWED = "renewed"
"""Stands among the functions that failed when a session was renewed before it expired: it lasts through the next failure."""


@functools.cache
def renewal(case: Case) -> Tool:
    """The function that begins a new session, its name in a case."""

    def renew() -> str:
        """Begin a new session when the old one has expired."""
        return "renewed"

    renew.__name__ = written(RENEW, case)
    return tool(renew)


class WantedCall(NamedTuple):
    """A call that a request wants, as the agent writes it. ``mark`` is the same for calls that mean the same."""

    call: ToolCall
    function: DataFunction
    mark: str
    after: frozenset[int]


class Round(NamedTuple):
    """A request, and ``key`` of the data when it is fulfilled."""

    say: str
    wanted: tuple[WantedCall, ...]
    key: int
    ask: Mapping[str, Json] | None  # what is told only when asked for
    answer: Mapping[str, Json] | None  # what must be told
    declines: bool  # no function does it
    fails: Mapping[str, str]  # function → how its first call fails


class Conversation(NamedTuple):
    """A task's conversation."""

    tools: tuple[Tool, ...]
    data: CallData
    rounds: tuple[Round, ...]
    case: Case
    dialect: str
    compact: bool


class FunctionCallState(NamedTuple):
    """State of a conversation. ``made`` are the marks of this round's calls, in order."""

    task: str
    patience: int
    data: CallData
    round: int = 0
    made: tuple[str, ...] = ()
    read: frozenset[str] = frozenset()  # tables that were looked into
    failed: frozenset[str] = frozenset()  # functions of this round that failed once
    expired: bool = False
    asked: bool = False
    doubted: bool = False  # the user has asked in this round whether it cannot be done
    best: Nearness = Nearness()
    valid: bool = False  # a message of this round called functions and all calls fitted their schemas


def _conversation(task: Task) -> Conversation:
    """The conversation of a task."""
    options = task.options
    try:
        case: Case = options["case"]
        tools = tuple(as_tool(words, case, options["order"]) for words in options["functions"])
        data, rounds = CallData(options["tables"]), list[Round]()
        now = data
        for one in options["rounds"]:
            wanted: list[WantedCall] = []
            for planned in one["plan"]:
                made, arguments = functions()[planned["function"]], planned["arguments"]
                _, now, mark = carry_out(made, arguments, now)
                call = ToolCall(written(made.words, case), to_theirs(made, arguments, case))
                wanted.append(WantedCall(call, made, mark, frozenset(planned["after"])))
            rounds.append(
                Round(
                    one["say"],
                    tuple(wanted),
                    now.key,
                    one["ask"],
                    one["answer"],
                    one["declines"],
                    one["fails"],
                )
            )
        return Conversation(
            (*tools, renewal(case)),
            data,
            tuple(rounds),
            case,
            options["dialect"],
            options["text"] == "compact",
        )
    except (KeyError, TypeError) as error:
        raise EnvError(
            f"This is no task of function calling: {error!r}.", "Take tasks from a suite."
        ) from None


conversation_of: WorldCache[Conversation] = WorldCache(_conversation)
"""The conversation of a task, built once."""


def begin(talk: Conversation, task: Task) -> FunctionCallState:
    """The first moment."""
    return FunctionCallState(task.id, task.options["patience"], talk.data)
