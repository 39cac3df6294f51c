"""The chat messages that environments and policies exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from turnwise.tools.core import ToolCall

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Image:
    """A picture inside a message, encoded as ``media_type`` (``image/png``)."""

    data: bytes
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. A result of a tool carries the id of the call it answers."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    images: tuple[Image, ...] = ()

    def __str__(self) -> str:
        calls = "".join(f"\n→ {call.name}({dict(call.arguments)})" for call in self.tool_calls)
        return f"{self.content}{calls}".strip("\n")


class Messages(tuple[Message, ...]):
    """What the environment says at one turn; prints as its text."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(f"{message.role}: {message}" for message in self)
