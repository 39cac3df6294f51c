"""Anthropic's messages (``POST /v1/messages``, and ``/v1/messages/count_tokens``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from turnwise.agents.core import Finish
from turnwise.agents.gateway.core import (
    Answered,
    Api,
    ChatRequest,
    FixedSampling,
    JsonText,
    RefusedError,
    StreamEvent,
    arguments_text,
    asked_for,
    bad,
    beside,
    check_keys,
    check_sampling,
    offered_tool,
    pieces,
    read_flag,
    read_limit,
    read_list,
    read_object,
    read_parts,
    read_text,
    unsupported,
)
from turnwise.agents.gateway.pictures import read_source
from turnwise.envs.messages import Image, Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall

_KEYS: dict[str, tuple[Any, ...] | None] = {
    **dict.fromkeys(
        ("messages", "system", "model", "max_tokens", "temperature", "top_p", "tools", "stream", "metadata")
    ),
    "service_tier": None,
    "tool_choice": (
        {"type": "auto"},
        {"type": "auto", "disable_parallel_tool_use": False},
    ),
    "stop_sequences": ([],),
    "top_k": (),
    "thinking": ({"type": "disabled"},),
    "container": (),
    "mcp_servers": ([],),
    "context_management": (),
}
_WISHES = (
    "temperature", "top_p", "top_k", "max_tokens", "stop_sequences", "tool_choice", "thinking", "output_config",
)  # fmt: skip
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_PICTURES = {"image": read_source}


def parse(body: Mapping[str, Any], sampled: FixedSampling) -> ChatRequest:
    """Read a request.

    Raises:
        RefusedError: it is none, or asks for what cannot be done.
    """
    handed_on = _WISHES if sampled.hands_on else ()
    check_keys(body, _KEYS, handed_on)
    check_sampling(body, sampled)
    given = read_list(body.get("messages"), "messages")
    if not given:
        raise bad("messages must not be empty.", "messages")
    system = read_parts(body.get("system"), "system", ("text",)).text
    said = [Message("system", system)] if system else []
    for n, one in enumerate(given):
        said.extend(_read(one, f"messages[{n}]"))
    tools = () if body.get("tools") is None else _tools(body["tools"])
    limit, stream = read_limit(body, "max_tokens"), read_flag(body, "stream")
    return ChatRequest(
        tuple(said),
        tools,
        limit,
        stream,
        model=read_text(body.get("model") or "", "model"),
        keys={"thinking": body["thinking"]} if body.get("thinking") else {},
        wishes=_wishes(asked_for(body, _KEYS, handed_on)),
    )


def _wishes(asked: dict[str, Any]) -> dict[str, Json]:
    """Translate what is asked for into the names of chat completions."""
    wishes: dict[str, Json] = {}
    for key, value in asked.items():
        match key:
            case "stop_sequences":
                wishes["stop"] = value
            case "tool_choice":
                given = read_object(value, key)
                named = {"type": "function", "function": {"name": given.get("name")}}
                choice = named if given.get("type") == "tool" else _CHOICES.get(given.get("type", ""))
                if choice is None:
                    raise unsupported(key, value, f"its type is tool, {', '.join(_CHOICES)}.")
                wishes |= {} if choice == "auto" else {key: choice}
                wishes |= {"parallel_tool_calls": False} if given.get("disable_parallel_tool_use") else {}
            case "output_config":
                given = read_object(value, key)
                if {*given} - {"effort"}:
                    raise unsupported(key, value, "only its effort can be handed on.")
                wishes |= {"reasoning_effort": given["effort"]} if given else {}
            case _:
                wishes[key] = value
    return wishes


def answer(asked: ChatRequest, answered: Answered) -> Json:
    """The ``message`` object."""
    content = _thoughts(asked, answered)
    if answered.message.content or not answered.message.tool_calls:
        content.append({"type": "text", "text": answered.message.content})
    content += [_call(call, JsonText(arguments_text(call))) for call in answered.message.tool_calls]
    ended: dict[str, Json] = {"stop_reason": _reason(answered), "stop_sequence": None}
    return _head(asked, answered) | {"content": content} | ended | {"usage": _usage(answered)}


def events(asked: ChatRequest, answered: Answered) -> Iterator[StreamEvent]:
    """The events of a stream, calls as pieces of JSON."""
    opening = _head(asked, answered) | {"content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message=opening | {"usage": _usage(answered) | {"output_tokens": 0}})
    blocks: list[tuple[Json, str, str, str]] = []
    thoughts = _thoughts(asked, answered)
    if answered.message.content or not answered.message.tool_calls:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", answered.message.content))
    for call in answered.message.tool_calls:
        said = arguments_text(call)
        blocks.append((_call(call, {}), "input_json_delta", "partial_json", said))
    for n, block in enumerate(thoughts):
        yield from _thought_events(n, block)
    for n, (block, kind, key, text) in enumerate(blocks, len(thoughts)):
        yield _event("content_block_start", index=n, content_block=block)
        for piece in pieces(text):
            yield _event("content_block_delta", index=n, delta={"type": kind, key: piece})
        yield _event("content_block_stop", index=n)
    ended = {"stop_reason": _reason(answered), "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": answered.tokens})
    yield _event("message_stop")


def _thoughts(asked: ChatRequest, answered: Answered) -> list[Json]:
    """Return the thoughts, where they were asked for: the blocks that the server wrote, or one of our own."""
    if asked.keys.get("thinking", {"type": "disabled"}) == {"type": "disabled"}:
        return []
    written = beside(answered.message.extra, ()).get("thinking_blocks")
    if isinstance(written, list) and all(
        isinstance(one, dict) and one.get("type") in _KINDS for one in written
    ):
        return [*written]
    thoughts = answered.served.thoughts
    return [{"type": "thinking", "thinking": thoughts, "signature": answered.id}] if thoughts else []


_KINDS = ("thinking", "redacted_thinking")


def _thought_events(index: int, block: Json) -> Iterator[StreamEvent]:
    begun = block | {"thinking": "", "signature": ""} if block["type"] == "thinking" else block
    yield _event("content_block_start", index=index, content_block=begun)
    if block["type"] == "thinking":
        for piece in pieces(str(block.get("thinking", ""))):
            yield _event(
                "content_block_delta", index=index, delta={"type": "thinking_delta", "thinking": piece}
            )
        signature = {"type": "signature_delta", "signature": str(block.get("signature", ""))}
        yield _event("content_block_delta", index=index, delta=signature)
    yield _event("content_block_stop", index=index)


def error(refused: RefusedError) -> Json:
    """The ``error`` object, as Anthropic's clients read it."""
    kinds = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
    }
    kind = kinds.get(refused.status, "api_error" if refused.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": None}


def error_event(refused: RefusedError) -> StreamEvent:
    """A refusal in the middle of a stream."""
    return StreamEvent(error(refused), "error")


def _event(name: str, /, **data: Json) -> StreamEvent:
    return StreamEvent({"type": name} | data, name)


def _tools(value: Any) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for n, one in enumerate(read_list(value, "tools")):
        where = f"tools[{n}]"
        if read_object(one, where).get("type", "custom") != "custom":
            raise unsupported(
                f"{where}.type", one.get("type"), "only tools of the client's own can be offered."
            )
        tools.append(offered_tool(one.get("name"), one.get("description"), one.get("input_schema"), where))
    return tuple(tools)


def _read(value: Any, where: str) -> Iterator[Message]:
    """The messages that one of Anthropic's stands for: results of tools are messages of their own here."""
    given = read_object(value, where)
    role, content = given.get("role"), given.get("content")
    if role not in ("user", "assistant", "system"):
        raise bad(f"{where}.role is {role!r:.40}; it is user or assistant.", where)
    if isinstance(content, str):
        yield Message(role, content)
        return
    blocks = [
        read_object(one, f"{where}.content[{n}]")
        for n, one in enumerate(read_list(content, f"{where}.content"))
    ]
    if role == "assistant":
        yield _assistant(blocks, where)
        return
    pictures = _PICTURES if role == "user" else {}
    texts, images = list[str](), list[Image]()
    for n, block in enumerate(blocks):
        place = f"{where}.content[{n}]"
        if block.get("type") == "tool_result":
            said, seen = read_parts(block.get("content"), f"{place}.content", ("text",), pictures)
            answers = read_text(block.get("tool_use_id"), place)
            yield Message("tool", said, tool_call_id=answers, images=seen)
        else:
            said, seen = read_parts([block], place, ("text",), pictures)
            texts += [] if seen else [said]
            images += seen
    if texts or images:
        yield Message(role, "\n".join(texts), images=tuple(images))


def _assistant(blocks: list[dict[str, Any]], where: str) -> Message:
    calls: list[ToolCall] = []
    texts: list[str] = []
    for n, block in enumerate(blocks):
        place = f"{where}.content[{n}]"
        if block.get("type") == "tool_use":
            name, told = read_text(block.get("name"), place), read_object(block.get("input"), place)
            calls.append(ToolCall(name, told, read_text(block.get("id"), place)))
        elif block.get("type") in _KINDS:
            continue  # the session knows by the reply what was thought before it
        else:
            texts.append(read_parts([block], place, ("text",)).text)
    return Message("assistant", "\n".join(texts), tuple(calls))


def _call(call: ToolCall, told: Json) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": told}


def _reason(answered: Answered) -> str:
    if answered.cut:
        return "max_tokens"
    if answered.withheld or answered.served.finish is Finish.REFUSAL:
        return "refusal"
    return "tool_use" if answered.message.tool_calls else "end_turn"


def _head(asked: ChatRequest, answered: Answered) -> dict[str, Json]:
    return {"id": f"msg_{answered.id}", "type": "message", "role": "assistant", "model": asked.model}


def _usage(answered: Answered) -> dict[str, Json]:
    cached = answered.served.usage.cached or 0
    return {
        "input_tokens": answered.prompt_tokens - cached,
        "output_tokens": answered.tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
    }


_PING = f"event: ping\ndata: {json.dumps({'type': 'ping'})}\n\n".encode()
MESSAGES = Api("/v1/messages", parse, answer, events, error, error_event, _PING)
