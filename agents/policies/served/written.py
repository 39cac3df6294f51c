"""Messages as the chat-completions protocol writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from turnwise.envs.messages import Image, Message
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall

WHITE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PMQ0AAAwDoPo33UrYvQQckD4XAQEBAQEBAQEBAQEB"
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAYHLAMpT0sIcNbcEAAAAAElFTkSuQmCC"
)
"""A picture that anything reads that reads pictures: 64 × 64, white."""


def conversation(messages: Iterable[Message]) -> list[dict[str, Json]]:
    """Messages as the chat-completions protocol writes them.

    Results of tools are text there, and nothing may come between them, so their pictures follow in a
    message of the user.
    """
    said: list[dict[str, Json]] = []
    late: list[Image] = []
    for message in messages:
        if late and message.role != "tool":
            said.append({"role": "user", "content": _parts("", late)})
            late = []
        said.append(to_openai(message))
        late += message.images if message.role == "tool" else ()
    return [*said, {"role": "user", "content": _parts("", late)}] if late else said


def to_openai(message: Message) -> dict[str, Json]:
    """A message as the chat-completions protocol writes it; pictures as data URIs, those of tools left out."""
    seen = message.images if message.role != "tool" else ()
    content = _parts(message.content, seen) if seen else message.content
    said: dict[str, Json] = {"role": message.role, "content": content}
    if message.tool_calls:
        said["tool_calls"] = [_call_json(call) for call in message.tool_calls]
    if message.role == "tool":
        said["tool_call_id"] = message.tool_call_id
    return said


def _parts(text: str, images: Iterable[Image]) -> list[dict[str, Json]]:
    parts: list[dict[str, Json]] = [{"type": "text", "text": text}] if text else []
    for image in images:
        parts.append({"type": "image_url", "image_url": {"url": image.data_uri}})
    return parts


def _call_json(call: ToolCall) -> dict[str, Json]:
    function = {"name": call.name, "arguments": json.dumps(dict(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}


def has_pictures(messages: Iterable[dict[str, Json]]) -> bool:
    """Whether a conversation as the protocol writes it has pictures."""
    return any(_is_picture(part) for message in messages for part in _listed(message["content"]))


def with_other_pictures(messages: Iterable[dict[str, Json]]) -> list[dict[str, Json]]:
    """The conversation with :data:`WHITE` in the place of each picture."""
    white: dict[str, Json] = {"type": "image_url", "image_url": {"url": WHITE}}
    return [
        {**message, "content": [white if _is_picture(part) else part for part in content]}
        if isinstance(content := message["content"], list)
        else message
        for message in messages
    ]


def _listed(content: Json) -> Sequence[Json]:
    return content if isinstance(content, list) else ()


def _is_picture(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "image_url"
