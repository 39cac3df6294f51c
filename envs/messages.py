"""The chat messages that environments and policies exchange."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from turnwise.tools.core import Json, ToolCall, Verbatim

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
GUIDANCE_MARKS = ("<guidance>", "</guidance>")
"""Between them stands help that a policy reads and that nothing is learned under."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture inside a message, encoded as ``media_type`` (``image/png``)."""

    data: bytes
    media_type: str = "image/png"

    @property
    def data_uri(self) -> str:
        """An address that holds it.

        >>> Image(b"ab").data_uri
        'data:image/png;base64,YWI='
        """
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. A result of a tool carries the id of the call it answers.

    ``malformed`` says why a tool call that the policy attempted could not be read; the policy is informed (E7). ``extra`` is
    what the policy's server wrote beside it, which no environment sees; messages that differ in it alone are equal.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    images: tuple[Image, ...] = ()
    malformed: str = ""
    extra: Verbatim | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        calls = "".join(f"\n→ {call.name}({dict(call.arguments)})" for call in self.tool_calls)
        return f"{self.content}{calls}".strip("\n")

    def to_json(self) -> dict[str, Json]:
        """One JSON object; what is empty is left out."""
        data: dict[str, Json] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            data["tool_calls"] = [call.to_json() for call in self.tool_calls]
        if self.tool_call_id:
            data["tool_call_id"] = self.tool_call_id
        if self.malformed:
            data["malformed"] = self.malformed
        if self.extra:
            data["extra"] = self.extra.to_json()
        if self.images:
            data["images"] = [
                {"media_type": image.media_type, "data": base64.b64encode(image.data).decode()}
                for image in self.images
            ]
        return data

    @staticmethod
    def from_json(data: Mapping[str, Json]) -> Message:
        images = data.get("images", ())
        return Message(
            role=data["role"],
            content=data["content"],
            tool_calls=tuple(ToolCall.from_json(call) for call in data.get("tool_calls", ())),
            tool_call_id=data.get("tool_call_id", ""),
            images=tuple(Image(base64.b64decode(image["data"]), image["media_type"]) for image in images),
            malformed=data.get("malformed", ""),
            extra=Verbatim.from_json(data.get("extra")),
        )

    def alone(self) -> Message:
        """The message without what a server wrote beside it and its calls."""
        if self.extra is None and not any(call.extra for call in self.tool_calls):
            return self
        calls = tuple(replace(call, extra=None) for call in self.tool_calls)
        return replace(self, tool_calls=calls, extra=None)


class Messages(tuple[Message, ...]):
    """Messages of the environment at one turn; prints as its text."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(f"{message.role}: {message}" for message in self)

    def to_json(self) -> list[dict[str, Json]]:
        return [message.to_json() for message in self]

    @staticmethod
    def from_json(data: Sequence[Mapping[str, Json]]) -> Messages:
        return Messages(Message.from_json(message) for message in data)


def guidance(text: str) -> str:
    """Help between its marks; nothing, if there is none."""
    return f"{GUIDANCE_MARKS[0]}\n{text}\n{GUIDANCE_MARKS[1]}" if text else ""


def without_guidance(text: str) -> str:
    """A text as it would be without help.

    >>> without_guidance(f"Mend it.\\n\\n{guidance('Look at add.')}")
    'Mend it.'
    """
    kept: list[str] = []
    place = 0
    while (begin := text.find(GUIDANCE_MARKS[0], place)) >= 0:
        if (end := text.find(GUIDANCE_MARKS[1], begin)) < 0:
            break
        kept.append(text[place:begin].rstrip())
        place = end + len(GUIDANCE_MARKS[1])
    return "".join([*kept, text[place:]])
