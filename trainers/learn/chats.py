"""Chats that somebody wrote down, as demonstrations of a warm start."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.core import PREVIOUS, ROOT, Reply, Trajectory, Turn
from turnwise.agents.gateway.chat import conversation
from turnwise.agents.gateway.core import RefusedError
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message, Messages
from turnwise.errors import RunError
from turnwise.tasks.core import derive_rng
from turnwise.tools.core import Tool

READ = "chat"
"""The source of an assistant's message that is read and not learned."""
_logger = logging.getLogger(__name__)
_SPEAKERS = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
}
"""Names of ShareGPT for the speakers of a conversation."""


class WrittenTurn(NamedTuple):
    """What an assistant read since it last spoke, and what it said; ``weight`` 0: it is read and not learned."""

    observation: tuple[Message, ...]
    said: Message
    weight: float


class WrittenChat(NamedTuple):
    """A conversation with the tools that were offered in it."""

    turns: tuple[WrittenTurn, ...]
    tools: tuple[Tool, ...]


class Chats:
    """The chats of a file, in an order that is drawn anew each time that all were shown."""

    def __init__(self, path: str | Path, renderer: Renderer, context: int, seed: int) -> None:
        """Read a file.

        Args:
            path: as :func:`read_chats` reads it.
            renderer: gives the tokens that the policy would be given and would say.
            context: tokens of the longest chat that is shown; the next one in the file stands in for one that is longer.
            seed: of the order.

        Raises:
            RunError: the file cannot be read, or a line of it is no chat.
        """
        self.path, self.renderer, self.context, self.seed = path, renderer, context, seed
        self.chats = read_chats(path)
        self._long: set[int] = set()
        self._order: tuple[int, list[int]] = (-1, [])

    def batch(self, start: int, count: int) -> list[Trajectory]:
        """Chats with their tokens, from place ``start`` of the order on.

        Raises:
            RunError: no chat fits into the context.
        """
        return [self._fitting(place) for place in range(start, start + count)]

    def _fitting(self, place: int) -> Trajectory:
        total = len(self.chats)
        first = self._ordered(place // total)[place % total]
        for index in (*range(first, total), *range(first)):
            if index in self._long:
                continue
            shown = demonstrated_chat(self.chats[index], self.renderer)
            if (length := _length(shown)) <= self.context:
                return shown
            self._long.add(index)
            _logger.warning(
                "chat %d of %s has %d tokens where %d fit, and is left out",
                index + 1,
                self.path,
                length,
                self.context,
            )
        raise RunError(
            f"None of the {total} chats of {self.path} fits into {self.context} tokens.",
            "Raise engine.context_length, or shorten the chats.",
        )

    def _ordered(self, again: int) -> list[int]:
        """The order in which the chats are shown for this time, drawn once for all of it."""
        if self._order[0] != again:
            order = [*range(len(self.chats))]
            derive_rng("chats", self.seed, again).shuffle(order)
            self._order = (again, order)
        return self._order[1]


def read_chats(path: str | Path) -> list[WrittenChat]:
    """Read a file of JSON lines, each a chat in one of three forms.

    ``{"messages": [...], "tools": [...]}`` as chat completions have it (`turnwise chats` writes this), where an assistant's
    message may have ``"weight": 0``; ``{"conversations": [{"from": "human", "value": ...}, ...]}`` as ShareGPT has it; or ``{"prompt":
    ..., "completion": ...}``, each a text or messages.

    Raises:
        RunError: the file cannot be read, holds nothing, or a line is no chat; the line is named.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(
            f"The chats {path} cannot be read: {error}.", "Give a file of JSON lines (warm_start.chats)."
        ) from None
    chats: list[WrittenChat] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                chats.append(_chat(json.loads(line)))
            except json.JSONDecodeError as error:
                raise _bad(path, number, f"it is no JSON ({error})") from None
            except RefusedError as error:
                raise _bad(path, number, error.message.rstrip(".")) from None
            except _NoChatError as error:
                raise _bad(path, number, str(error)) from None
    if not chats:
        raise RunError(f"{path} holds no chat.", "Write a JSON object with messages on each line.")
    return chats


def demonstrated_chat(chat: WrittenChat, renderer: Renderer) -> Trajectory:
    """A chat with its tokens, as :class:`~turnwise.agents.policies.model.DemonstrationPolicy` gives them to a script's episode."""
    turns: list[Turn] = []
    told: list[Message] = []
    kept = renderer.conversation(None)
    for written in chat.turns:
        told.extend(written.observation)
        fresh = not turns
        if fresh:
            ids = renderer.start(told, chat.tools, kept)
        else:
            more = renderer.extend(
                told, len(written.observation), turns[-1].reply.action_ids[-1], chat.tools, kept
            )
            ids, fresh = more.ids, more.fresh
        parent = ROOT if fresh and turns else PREVIOUS
        source = "" if written.weight else READ
        reply = Reply(written.said, ids, renderer.reply_ids(written.said), parent=parent, source=source)
        turns.append(Turn(Messages(written.observation), reply, 0.0, {}, "", weight=written.weight))
        told.append(written.said)
    return Trajectory(tuple(turns))


class _NoChatError(Exception):
    """An object that is in none of the forms."""


def _chat(row: Any) -> WrittenChat:
    if not isinstance(row, Mapping):
        raise _NoChatError("it is no object")
    messages, weights = _messages(row)
    read, tools = conversation(messages, row.get("tools") or None)
    return WrittenChat(tuple(_turns(read, weights)), tools)


def _messages(row: Mapping[str, Any]) -> tuple[list[Any], list[float]]:
    """The messages of a row in the form of chat completions, and the weight of each."""
    if "messages" in row:
        given: Any = row["messages"]
    elif "conversations" in row:
        given = [_speech(one) for one in _listed(row["conversations"], "conversations")]
    elif "prompt" in row and "completion" in row:
        given = [*_said(row["prompt"], "user"), *_said(row["completion"], "assistant")]
    else:
        keys = ", ".join(map(str, row)) or "none"
        raise _NoChatError(
            f"it has no messages, conversations, or prompt and completion; its keys: {keys[:200]}"
        )
    messages = _listed(given, "messages")
    return [_with_written_arguments(one) for one in messages], [_weight(one) for one in messages]


def _turns(messages: Sequence[Message], weights: Sequence[float]) -> Iterator[WrittenTurn]:
    """Cut a conversation behind each assistant's message; what nobody answered is left out."""
    observed: list[Message] = []
    answered = False
    for number, (message, weight) in enumerate(zip(messages, weights, strict=True)):
        if message.role != "assistant":
            observed.append(message)
        elif not observed:
            raise _NoChatError(
                f"messages[{number}] is an assistant's, and follows nothing that it could answer"
            )
        else:
            yield WrittenTurn(tuple(observed), message, weight)
            observed, answered = [], True
    if not answered:
        raise _NoChatError("no message is an assistant's, so that nothing can be imitated")


def _with_written_arguments(message: Any) -> Any:
    """A message whose calls have their arguments as texts, as chat completions have them; templates' own form is objects."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_with_written_argument(call) for call in calls]}


def _with_written_argument(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), Mapping):
        return call
    return {**call, "function": {**function, "arguments": json.dumps(function["arguments"])}}


def _speech(one: Any) -> dict[str, Any]:
    if not isinstance(one, Mapping) or one.get("from") not in _SPEAKERS:
        raise _NoChatError(
            f"a conversation's part is from one of {', '.join(_SPEAKERS)}, not {str(one)[:80]}"
        )
    return {"role": _SPEAKERS[one["from"]], "content": one.get("value")}


def _said(given: Any, role: str) -> list[Any]:
    return [{"role": role, "content": given}] if isinstance(given, str) else _listed(given, role)


def _listed(given: Any, name: str) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise _NoChatError(f"{name} is no list of messages")
    return given


def _weight(message: Any) -> float:
    weight = message.get("weight", 1) if isinstance(message, Mapping) else 1
    if weight not in (0, 1):
        raise _NoChatError(f"the weight of a message is 0 or 1, not {weight!r:.40}")
    return float(weight)


def _length(trajectory: Trajectory) -> int:
    """Tokens of the longest row."""
    longest = row = 0
    for turn in trajectory.turns:
        row = (
            len(turn.reply.prompt_ids)
            + len(turn.reply.action_ids)
            + (0 if turn.reply.parent == ROOT else row)
        )
        longest = max(longest, row)
    return longest


def _bad(path: str | Path, number: int, why: str) -> RunError:
    return RunError(f"Line {number} of {path} is no chat: {why}.", "Repair the line, or leave it out.")
