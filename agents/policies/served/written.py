"""Messages as the chat-completions protocol writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from turnwise.envs.messages import Image, Message
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall


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
