"""Messages as the chat-completions protocol writes them, in the form that a server wants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from turnwise.agents.policies.served.naming import ToolNames
from turnwise.agents.tokens.telling import told_of_tools
from turnwise.envs.messages import Image, Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall, Verbatim
from turnwise.tools.dialects.core import Dialect

WHITE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PMQ0AAAwDoPo33UrYvQQckD4XAQEBAQEBAQEBAQEB"
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAYHLAMpT0sIcNbcEAAAAAElFTkSuQmCC"
)
"""A picture that anything reads that reads pictures: 64 × 64, white."""
EMPTY = "(empty)"
"""Stands for a message without words: many servers refuse an empty one."""
SILENCES: tuple[Json, ...] = (None, "", EMPTY)
"""Stand-ins for content beside calls, in the order in which servers are tried."""
NO_TOOLS = ToolNames(())


class MessageForm(NamedTuple):
    """The form in which a server wants messages.

    Attributes:
        origin: of what was written by this server, which is given back to it.
        dialect: in which calls stand in the text; None: they stand beside it.
        silence: content beside calls, a place in :data:`SILENCES`.
        left_out: keys of messages and of calls that it does not take.
        short_ids: ids of calls have nine letters and digits.
        single_calls: a message has one call at most.
        joined: the roles of user and assistant alternate, and nothing of the user's stands after a tool's.
        no_system: the system's words stand at the beginning of the user's.
    """

    origin: str = ""
    dialect: Dialect | None = None
    silence: int = 0
    left_out: frozenset[str] = frozenset()
    short_ids: bool = False
    single_calls: bool = False
    joined: bool = False
    no_system: bool = False


def conversation(
    messages: Iterable[Message], form: MessageForm | None = None, names: ToolNames = NO_TOOLS
) -> list[dict[str, Json]]:
    """Messages as the chat-completions protocol writes them.

    Results of tools are text there, and nothing may come between them, so their pictures follow in a
    message of the user.
    """
    form = form or MessageForm()
    said: list[dict[str, Json]] = []
    late: list[Image] = []
    for message in messages:
        if late and message.role != "tool":
            said.append({"role": "user", "content": _parts("", late)})
            late = []
        said.append(to_openai(message, form, names))
        late += message.images if message.role == "tool" else ()
    if late:
        said.append({"role": "user", "content": _parts("", late)})
    if form.single_calls:
        said = [*_one_call_each(said)]
    return _joined(said, form)


def with_tools_told(messages: Sequence[Message], tools: Sequence[Tool], dialect: Dialect) -> list[Message]:
    """The conversation whose system message says which tools there are, and how they are called."""
    if not tools:
        return [*messages]
    about = told_of_tools([json.dumps(tool.spec.to_json(), ensure_ascii=False) for tool in tools], dialect)
    if messages and messages[0].role == "system":
        first, *others = messages
        return [Message("system", f"{about}\n\n{first.content}", images=first.images), *others]
    return [Message("system", about), *messages]


def to_openai(
    message: Message, form: MessageForm | None = None, names: ToolNames = NO_TOOLS
) -> dict[str, Json]:
    """A message as the chat-completions protocol writes it; pictures as data URIs, those of tools left out."""
    form = form or MessageForm()
    if form.dialect is not None and message.role in ("assistant", "tool"):
        return _in_words(message, form.dialect, form)
    seen = message.images if message.role != "tool" else ()
    said: dict[str, Json] = {"role": message.role, "content": _content(message, seen, form)}
    if message.tool_calls:
        said["tool_calls"] = [_call_json(call, form, names) for call in message.tool_calls]
    if message.role == "tool":
        said["tool_call_id"] = _id(message.tool_call_id, form)
    return said | _given_back(message.extra, form)


def _content(message: Message, seen: Sequence[Image], form: MessageForm) -> Json:
    if seen:
        return _parts(message.content, seen)
    if message.content.strip():
        return message.content
    return SILENCES[form.silence] if message.tool_calls else EMPTY


def _in_words(message: Message, dialect: Dialect, form: MessageForm) -> dict[str, Json]:
    """A reply or a tool's result where calls stand in the text."""
    if message.role == "tool":
        return {"role": "user", "content": f"<tool_response>\n{message.content}\n</tool_response>"}
    parts = [message.content] if message.content.strip() else []
    parts += [dialect.render(message.tool_calls)] if message.tool_calls else []
    return {"role": "assistant", "content": "\n".join(parts) or EMPTY} | _given_back(message.extra, form)


def _given_back(extra: Verbatim | None, form: MessageForm) -> dict[str, Json]:
    """Return what the server itself wrote beside a message or a call."""
    if extra is None or extra.origin != form.origin:
        return {}
    return {key: value for key, value in extra.keys.items() if key not in form.left_out}


def _parts(text: str, images: Iterable[Image]) -> list[dict[str, Json]]:
    parts: list[dict[str, Json]] = [{"type": "text", "text": text}] if text.strip() else []
    for image in images:
        parts.append({"type": "image_url", "image_url": {"url": image.data_uri}})
    return parts


def _call_json(call: ToolCall, form: MessageForm, names: ToolNames) -> dict[str, Json]:
    arguments = call.written or json.dumps(dict(call.arguments))
    function = {"name": names.sent(call.name), "arguments": arguments}
    made = {"id": _id(call.id, form), "type": "function", "function": function}
    return made | _given_back(call.extra, form)


def _id(given: str, form: MessageForm) -> str:
    """A call's id; where they are short, one of nine letters and digits that is a function of it.

    >>> _id("call_0", MessageForm(short_ids=True)), _id("abcdefgh1", MessageForm(short_ids=True))
    ('54dd52769', 'abcdefgh1')
    """
    if not form.short_ids or (len(given) == 9 and given.isascii() and given.isalnum()):
        return given
    return hashlib.blake2b(given.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()[:9]


def _one_call_each(said: Sequence[dict[str, Json]]) -> Iterator[dict[str, Json]]:
    """The same calls, each in a message of its own that is followed by its answer."""
    waiting: dict[str, dict[str, Json]] = {}
    for message in said:
        calls = message.get("tool_calls") or ()
        if len(calls) > 1:
            first, *others = calls
            waiting = {call["id"]: call for call in others}
            yield {**message, "tool_calls": [first]}
            continue
        if message["role"] == "tool" and (call := waiting.pop(message["tool_call_id"], None)) is not None:
            yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield message


def _joined(said: Sequence[dict[str, Json]], form: MessageForm) -> list[dict[str, Json]]:
    """The messages with those joined that the server does not take apart."""
    found: list[dict[str, Json]] = []
    for message in said:
        role = "user" if form.no_system and message["role"] == "system" else message["role"]
        last = found[-1] if found else {}
        joins = form.joined or form.dialect is not None or (form.no_system and role == "user")
        same = last.get("role") == role and role in ("user", "system", "assistant")
        below = form.joined and role == "user" and last.get("role") == "tool"
        plain = not (last.get("tool_calls") or message.get("tool_calls"))
        if joins and (same or below) and plain:
            found[-1] = {**last, "content": _both(last["content"], message["content"])}
        else:
            found.append({**message, "role": role})
    return found


def _both(one: Json, other: Json) -> Json:
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    return [*_as_parts(one), *_as_parts(other)]


def _as_parts(content: Json) -> Sequence[Json]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def has_pictures(messages: Iterable[Mapping[str, Json]]) -> bool:
    """Return whether a conversation as the protocol writes it has pictures."""
    return any(_is_picture(part) for message in messages for part in _listed(message.get("content")))


def with_other_pictures(messages: Iterable[dict[str, Json]]) -> list[dict[str, Json]]:
    """The conversation with :data:`WHITE` in the place of each picture."""
    white: dict[str, Json] = {"type": "image_url", "image_url": {"url": WHITE}}
    return [
        {**message, "content": [white if _is_picture(part) else part for part in content]}
        if isinstance(content := message.get("content"), list)
        else message
        for message in messages
    ]


def _listed(content: Json) -> Sequence[Json]:
    return content if isinstance(content, list) else ()


def _is_picture(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "image_url"
