"""Hashes by which a session knows requests, and the beginnings of conversations, again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turnwise.agents.gateway.offloading import json_pieces
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool


def request_key(body: Mapping[str, Any], *, patient: bool = False) -> str:
    """Hash a request's body, the same whether it is streamed or not; ``patient`` as in :func:`json_pieces`."""
    kept = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    digest = hashlib.sha256()
    for piece in json_pieces(kept, patient=patient):
        digest.update(piece.encode())
    return digest.hexdigest()


def fingerprints(
    messages: Sequence[Message], tools: Sequence[Tool], *, patient: bool = False
) -> Iterator[bytes]:
    """A hash of each beginning of a conversation, from that of the tools alone to the whole."""
    link = _hash_of([tool.spec.to_json() for tool in tools], patient)
    yield link
    for message in messages:
        link = linked(link, message, patient=patient)
        yield link


def linked(before: bytes, message: Message, *, patient: bool = False) -> bytes:
    """The hash of a conversation that goes on by a message, from that of what stands before it."""
    calls = [[call.id, call.name, _whole_numbers(dict(call.arguments))] for call in message.tool_calls]
    content = message.content.strip() if message.role == "assistant" else message.content
    link = hashlib.blake2b(before, digest_size=16)
    parts = [part.encode("utf-8", "surrogatepass") for part in (message.role, content, message.tool_call_id)]
    parts.append(_hash_of(calls, patient) if calls else b"")
    for image in message.images:
        parts += (image.media_type.encode(), image.data)
    for data in parts:
        link.update(b"%d:" % len(data))
        link.update(data)
    return link.digest()


def _hash_of(value: Json, patient: bool) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in json_pieces(value, patient=patient):
        digest.update(piece.encode())
    return digest.digest()


def _whole_numbers(value: Json) -> Json:
    """Arguments in which 1.0 is 1: clients that read JSON and write it again may make the one the other."""
    if isinstance(value, dict):
        return {key: _whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [*map(_whole_numbers, value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value
