"""OpenAI's chat completions (``POST /v1/chat/completions``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turnwise.agents.gateway.core import (
    Answered,
    Api,
    ChatRequest,
    FixedSampling,
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
    read_arguments,
    read_flag,
    read_limit,
    read_list,
    read_object,
    read_parts,
    read_text,
    unsupported,
)
from turnwise.agents.gateway.pictures import read_image_url
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall

_KEYS: dict[str, tuple[Any, ...] | None] = {
    **dict.fromkeys(
        (
            "messages",
            "model",
            "max_tokens",
            "max_completion_tokens",
            "temperature",
            "top_p",
            "tools",
            "stream",
        )
    ),
    **dict.fromkeys(
        ("stream_options", "seed", "user", "metadata", "store", "service_tier", "prompt_cache_key")
    ),
    **dict.fromkeys(("safety_identifier", "prompt_cache_retention")),
    "n": (1,),
    "stop": ((), [], ""),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "response_format": ({"type": "text"},),
    "tool_choice": ("auto",),
    "parallel_tool_calls": (True,),
    "modalities": (["text"],),
    "reasoning_effort": (),
    "verbosity": (),
    "prediction": (),
    "audio": (),
    "web_search_options": (),
    "functions": (),
    "function_call": (),
}
_WISHES = (
    "temperature", "top_p", "top_k", "min_p", "max_tokens", "max_completion_tokens", "stop", "seed", "tool_choice",
    "parallel_tool_calls", "response_format", "reasoning_effort", "reasoning", "thinking", "enable_thinking", "verbosity",
    "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias",
)  # fmt: skip
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_TEXTS, _PICTURES = ("text", "refusal"), {"image_url": read_image_url}


def parse(body: Mapping[str, Any], sampled: FixedSampling) -> ChatRequest:
    """Read a request.

    Raises:
        RefusedError: it is none, or asks for what cannot be done.
    """
    known = _KEYS if body.get("tools") else {**_KEYS, "tool_choice": ("auto", "none")}
    handed_on = _WISHES if sampled.hands_on else ()
    check_keys(body, known, handed_on)
    check_sampling(body, sampled)
    messages, tools = conversation(body.get("messages"), body.get("tools"))
    if not messages:
        raise bad("messages must not be empty.", "messages")
    options = read_object(body.get("stream_options") or {}, "stream_options")
    return ChatRequest(
        messages,
        tools,
        read_limit(body, "max_completion_tokens", "max_tokens"),
        read_flag(body, "stream"),
        read_flag(options, "include_usage"),
        read_text(body.get("model") or "", "model"),
        wishes=asked_for(body, known, handed_on),
    )


def conversation(messages: Any, tools: Any = None) -> tuple[tuple[Message, ...], tuple[Tool, ...]]:
    """Read a conversation in the form of chat completions, with the tools that were offered in it.

    Raises:
        RefusedError: it is none.
    """
    read = tuple(_message(one, f"messages[{n}]") for n, one in enumerate(read_list(messages, "messages")))
    return read, () if tools is None else _tools(tools)


def answer(asked: ChatRequest, answered: Answered) -> Json:
    """The ``chat.completion`` object."""
    refusal = answered.served.refusal or None
    message = _beside(answered) | {
        "role": "assistant",
        "content": answered.message.content,
        "refusal": refusal,
    }
    if answered.message.tool_calls:
        message["tool_calls"] = [_call(call) for call in answered.message.tool_calls]
        message["content"] = answered.message.content or None
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(answered)}
    return _head(asked, answered, "chat.completion") | {"choices": [choice], "usage": _usage(answered)}


def events(asked: ChatRequest, answered: Answered) -> Iterator[StreamEvent]:
    """The ``chat.completion.chunk`` objects, calls piece by piece like the text."""
    head = _head(asked, answered, "chat.completion.chunk") | ({"usage": None} if asked.usage else {})

    def chunk(delta: Json, reason: str | None = None) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return StreamEvent(head | {"choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    written = _beside(answered)
    for text in pieces(written.pop(_THOUGHTS, "")):
        yield chunk({_THOUGHTS: text})
    if written:
        yield chunk(written)
    for text in pieces(answered.served.refusal):
        yield chunk({"refusal": text})
    for text in pieces(answered.message.content):
        yield chunk({"content": text})
    for n, call in enumerate(answered.message.tool_calls):
        opening = _call(call)
        opening["function"]["arguments"] = ""
        yield chunk({"tool_calls": [{"index": n} | opening]})
        for text in pieces(arguments_text(call)):
            yield chunk({"tool_calls": [{"index": n, "function": {"arguments": text}}]})
    yield chunk({}, _reason(answered))
    if asked.usage:
        yield StreamEvent(head | {"choices": [], "usage": _usage(answered)})
    yield StreamEvent("[DONE]")


def error(refused: RefusedError) -> Json:
    """The ``error`` object, as OpenAI's clients read it."""
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(
        refused.status, kind
    )
    found = {
        "message": refused.message,
        "type": kind,
        "param": refused.param or None,
        "code": refused.code,
    }
    return {"error": found}


def error_event(refused: RefusedError) -> StreamEvent:
    """A refusal in the middle of a stream, at which OpenAI's clients raise."""
    return StreamEvent(error(refused))


def _tools(value: Any) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for n, one in enumerate(read_list(value, "tools")):
        where = f"tools[{n}]"
        if read_object(one, where).get("type", "function") != "function":
            raise unsupported(
                f"{where}.type", one.get("type"), "only functions can be offered to this policy."
            )
        function = read_object(one.get("function"), f"{where}.function")
        tools.append(
            offered_tool(function.get("name"), function.get("description"), function.get("parameters"), where)
        )
    return tuple(tools)


def _message(value: Any, where: str) -> Message:
    given = read_object(value, where)
    role = _ROLES.get(read_text(given.get("role"), f"{where}.role"))
    if role is None:
        raise bad(f"{where}.role is {given['role']!r:.40}; it is one of {', '.join(_ROLES)}.", where)
    pictures = _PICTURES if role in ("user", "tool") else {}
    content, images = read_parts(given.get("content"), f"{where}.content", _TEXTS, pictures)
    if role == "tool":
        answers = read_text(given.get("tool_call_id"), where)
        return Message("tool", content, tool_call_id=answers, images=images)
    if role != "assistant":
        return Message("system" if role == "system" else "user", content, images=images)
    if given.get("function_call") is not None:
        raise unsupported(f"{where}.function_call", given["function_call"], "write tool_calls instead.")
    told = read_list([] if given.get("tool_calls") is None else given["tool_calls"], f"{where}.tool_calls")
    calls = [_read_call(one, f"{where}.tool_calls[{n}]") for n, one in enumerate(told)]
    return Message("assistant", content, tuple(calls))


def _read_call(value: Any, where: str) -> ToolCall:
    given = read_object(value, where)
    function = read_object(given.get("function"), f"{where}.function")
    name = read_text(function.get("name"), f"{where}.function.name")
    arguments = read_arguments(function.get("arguments"), f"{where}.function.arguments")
    return ToolCall(name, arguments, read_text(given.get("id") or "", f"{where}.id"))


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_text(call)}
    own = {"id": call.id, "type": "function", "function": function}
    return beside(call.extra, own) | own


_THOUGHTS = "reasoning_content"


def _beside(answered: Answered) -> dict[str, Json]:
    """Return what the policy's server wrote beside the message, its thoughts among it."""
    written = beside(answered.message.extra, ("role", "content", "refusal", "tool_calls"))
    thoughts = answered.served.thoughts
    return written | ({_THOUGHTS: thoughts} if thoughts else {})


def _reason(answered: Answered) -> str:
    if answered.cut:
        return "length"
    if answered.withheld:
        return "content_filter"
    return "tool_calls" if answered.message.tool_calls else "stop"


def _head(asked: ChatRequest, answered: Answered, kind: str) -> dict[str, Json]:
    named = {"id": f"chatcmpl-{answered.id}", "object": kind, "created": answered.created}
    return named | {"model": asked.model, "system_fingerprint": None}


def _usage(answered: Answered) -> Json:
    given, sampled = answered.prompt_tokens, answered.tokens
    usage: dict[str, Json] = {
        "prompt_tokens": given,
        "completion_tokens": sampled,
        "total_tokens": given + sampled,
    }
    told = answered.served.usage
    if told.cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": told.cached}
    if told.reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": told.reasoning}
    return usage | ({} if told.cost is None else {"cost": told.cost})


CHAT = Api("/v1/chat/completions", parse, answer, events, error, error_event)
