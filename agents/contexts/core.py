"""The part of a conversation that a policy is shown at a turn: the words and forms that all context managers share.

A context manager is a pure function of the conversation so far (:class:`TalkSoFar`), so that whoever resumes, forks or
replays an episode shows the policy the same. Whatever the policy writes for its own later contexts is a turn of kind
``memory``: it is sampled and logged as any turn is, the environment is not told of it, and no limit of turns counts it.
Between two actions there is at most one, so that an episode comes to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from turnwise.agents.core import PREVIOUS, ROOT, History, MemoryMark, Reply, Turn
from turnwise.envs.messages import Message, Messages
from turnwise.errors import TurnwiseError
from turnwise.registry import get_component
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolError, find_tool


class TokenCounter(NamedTuple):
    """Counts of tokens: of messages, and of what a prompt has beside its messages where there are these tools."""

    messages: Callable[[Sequence[Message]], int]
    frame: Callable[[Sequence[Tool]], int]


LEAST_TOKENS = 32
"""Fewer hold no task."""


class Exchange(NamedTuple):
    """A message of the policy and what it was told after it.

    Attributes:
        action, answer: both.
        memory: its turn is of that kind.
        sampled: the tokens of the action, as they were sampled; the same words may have fewer.
    """

    action: Message
    answer: Messages
    memory: bool = False
    sampled: int = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        return (self.action, *self.answer)


@dataclass(frozen=True, slots=True)
class TalkSoFar:
    """An episode as a context manager sees it.

    Attributes:
        head: all that was said before the policy's first message: the system message, the task.
        passages: what was said since, in order.
        tools: of the environment.
        measure: counts tokens.
    """

    head: Messages
    passages: tuple[Exchange, ...]
    tools: Sequence[Tool]
    measure: TokenCounter

    def size(self, messages: Sequence[Message]) -> int:
        """The tokens of messages."""
        return self.measure.messages(messages)

    def sizes(self, passages: Sequence[Exchange]) -> list[int]:
        """The tokens of passages, each as many as it can have."""
        return [self.size(one.answer) + max(self.size([one.action]), one.sampled) for one in passages]

    def frame(self, own: Sequence[Tool] = ()) -> int:
        """The tokens of a prompt that are of no message, with ``own`` beside the environment's tools."""
        return self.measure.frame((*self.tools, *own) if own else self.tools)


class ContextShown(NamedTuple):
    """The messages that a policy is to be shown.

    Attributes:
        messages: the context.
        ask: unless empty, the policy is asked this, and its reply makes a turn of kind ``memory``.
        tools: of the manager; a reply that calls nothing else makes such a turn, too.
        write: the reply that calls one of them to keep a text.
    """

    messages: Sequence[Message]
    ask: str = ""
    tools: tuple[Tool, ...] = ()
    write: Callable[[str], Message] | None = None


Look: TypeAlias = Callable[[TalkSoFar], ContextShown]
"""A context manager with its options fixed."""


class ContextView(NamedTuple):
    """A policy's context at a turn.

    Attributes:
        messages: all that it reads.
        new: how many of the last ones follow its last reply.
        extends: they are what it read at its last turn, its reply, and ``new`` more.
        tools: that it may call.
        asked: the end of the messages, where a context manager asks.
        own: the names of the tools by which a memory may be written now; the environment does not know them.
        write: the reply that keeps a text, where one may be written now without being asked for.
    """

    messages: list[Message]
    new: int
    extends: bool
    tools: Sequence[Tool]
    asked: Messages = Messages()
    own: frozenset[str] = frozenset()
    write: Callable[[str], Message] | None = None

    def placed(self, reply: Reply, turns: int, *, fresh: bool) -> Reply:
        """The reply to this context at turn ``turns``, with its place and its kind; ``fresh``: its prompt extends none."""
        if fresh and turns:
            goes_on = reply.continues if self.extends else turns - 1
            reply = reply._replace(parent=ROOT, continues=goes_on)
        elif reply.parent != PREVIOUS:
            reply = reply._replace(parent=PREVIOUS)
        if reply.end is not None:
            return reply
        if self.asked:
            return reply._replace(memory=MemoryMark(self.asked))
        calls = reply.message.tool_calls
        if not calls or not {call.name for call in calls} <= self.own:
            return reply
        told = (Message("tool", self._result(call), tool_call_id=call.id) for call in calls)
        return reply._replace(memory=MemoryMark(told=Messages(told)))

    def _result(self, call: Any) -> str:
        try:
            found = find_tool(self.tools, call.name)
            return str(found.function(**found.validate(call)))
        except ToolError as error:
            return str(error)


@dataclass(slots=True)
class _LastView:
    """Memory of a conversation between its turns: it saves work, and is made again where it is not there."""

    turn: int = -1
    messages: Sequence[Message] = ()
    tools: Sequence[Tool] = ()


def look(manager: Look | None, history: History, measure: TokenCounter) -> ContextView:
    """The context of a policy before its next turn.

    Args:
        manager: decides; None: the whole conversation is shown.
        history: of the episode.
        measure: counts tokens.
    """
    turns = history.turns
    if manager is None:
        return ContextView(history.messages(), len(history.observation), True, history.tools)
    kept = history.shown if isinstance(history.shown, _LastView) else _LastView()
    shown = manager(conversation(turns, history.observation, history.tools, measure))
    written = bool(turns) and turns[-1].kind == "memory"
    asked = Messages([Message("user", shown.ask)] if shown.ask and turns and not written else ())
    messages = [*shown.messages, *asked]
    before = _read_before(manager, history, measure, kept)
    extends = not turns or messages[: len(before)] == before
    tools: Sequence[Tool] = history.tools
    if shown.tools:  # also after a memory, where they are no turn's: a prompt without them would extend none
        tools = (*tools, *shown.tools)
    if tools == kept.tools:
        tools = kept.tools  # the same object, by which a renderer knows a prompt again
    history.shown = _LastView(len(turns), messages, tools)
    own = frozenset() if written else frozenset(one.spec.name for one in shown.tools)
    write = None if written else shown.write
    return ContextView(messages, len(messages) - len(before), extends, tools, asked, own, write)


def _read_before(manager: Look, history: History, measure: TokenCounter, kept: _LastView) -> list[Message]:
    """The prompt of the policy's last turn, and its reply."""
    turns = history.turns
    if not turns:
        return []
    last = turns[-1]
    if kept.turn == len(turns) - 1:
        return [*kept.messages, last.action]
    asked = last.reply.memory.asked if last.reply.memory else ()
    then = conversation(turns[:-1], last.said, history.tools, measure)
    return [*manager(then).messages, *asked, last.action]


def conversation(
    turns: Sequence[Turn], observation: Messages, tools: Sequence[Tool], measure: TokenCounter
) -> TalkSoFar:
    """An episode up to a turn, as a context manager sees it; ``observation`` is what came after the last one."""
    answers = [turn.said for turn in turns[1:]] + [observation]
    passages = tuple(
        Exchange(turn.action, answer, turn.kind == "memory", len(turn.reply.action_ids))
        for turn, answer in zip(turns, answers, strict=False)
    )
    return TalkSoFar(turns[0].said if turns else observation, passages, tools, measure)


def told(head: Messages, text: str) -> tuple[Message, ...]:
    """The head, whose last message ends in a paragraph more.

    >>> told(Messages([Message("system", "Play."), Message("user", "Go.")]), "So far: went.")[1].content
    'Go.\\n\\nSo far: went.'
    """
    if not text or not head:
        return head
    *before, last = head
    return (*before, replace(last, content=f"{last.content}\n\n{text}"))


def flat(passages: Sequence[Exchange]) -> tuple[Message, ...]:
    """All messages of passages, in order."""
    return tuple(message for passage in passages for message in passage.messages)


def make_context(asked: Mapping[str, Json]) -> Look | None:
    """The context manager of this name with these options; None where none is asked for.

    >>> make_context({}) is None, make_context({"name": "window", "tokens": 300}) is None
    (True, False)

    Raises:
        NotFoundError: there is none of this name.
        RecipeError: an option is unknown or of the wrong type.
        TurnwiseError: no name is given, or so few tokens that no task fits.
    """
    if not asked:
        return None
    options = {key: value for key, value in asked.items() if key != "name"}
    name = asked.get("name")
    if not isinstance(name, str):
        raise TurnwiseError("A context manager has no name.", "Write {name: window, tokens: 2048}.")
    made = get_component("context", name).build(options)
    tokens = options.get("tokens")
    if isinstance(tokens, int) and tokens < LEAST_TOKENS:
        raise TurnwiseError(
            f"Context manager {name!r} would keep within {tokens} tokens.", f"Give {LEAST_TOKENS} or more."
        )
    return made


def read_context(said: str) -> dict[str, Json]:
    """A context manager as the command line names it: ``NAME`` or ``NAME:OPTION=VALUE,…``.

    >>> read_context("summary:tokens=400,keep=2"), read_context("window"), read_context("")
    ({'name': 'summary', 'tokens': 400, 'keep': 2}, {'name': 'window'}, {})

    Raises:
        TurnwiseError: an option has no value.
    """
    if not said:
        return {}
    name, _, rest = said.partition(":")
    options: dict[str, Json] = {"name": name}
    for one in filter(None, rest.split(",")):
        key, equals, value = one.partition("=")
        if not equals:
            raise TurnwiseError(
                f"The option {one!r} of the context manager {name!r} has no value.",
                f"Write {name}:OPTION=VALUE, such as {name}:tokens=2048.",
            )
        options[key.strip()] = _value(value.strip())
    return options


def _value(text: str) -> Json:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)
