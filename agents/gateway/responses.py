"""OpenAI's responses (``POST /v1/responses``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turnwise.agents.gateway.chat import error
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
    **dict.fromkeys(("input", "instructions", "model", "max_output_tokens", "temperature", "top_p", "tools")),
    **dict.fromkeys(("stream", "previous_response_id", "user", "metadata", "store", "service_tier")),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "stream_options")),
    "include": ([], ["reasoning.encrypted_content"]),
    "truncation": ("disabled",),
    "background": (False,),
    "tool_choice": ("auto",),
    "parallel_tool_calls": (True,),
    "text": ({"format": {"type": "text"}}, {}),
    "reasoning": ({},),
    "top_logprobs": (0,),
    "max_tool_calls": (),
    "conversation": (),
    "prompt": (),
}
_WISHES = (
    "temperature", "top_p", "max_output_tokens", "tool_choice", "parallel_tool_calls", "text", "reasoning", "top_k", "stop",
)  # fmt: skip
_TEXTS, _PICTURES = ("input_text", "output_text", "refusal"), {"input_image": read_image_url}
_ROLES = ("system", "developer", "user", "assistant")
_REPEATED = ("instructions", "metadata", "tools", "user", "previous_response_id")


def parse(body: Mapping[str, Any], sampled: FixedSampling) -> ChatRequest:
    """Read a request; what a previous response said stands before ``input`` later, as
    :attr:`turnwise.agents.gateway.core.ChatRequest.follows` says.

    Raises:
        RefusedError: it is none, or asks for what cannot be done.
    """
    tools = () if body.get("tools") is None else _tools(body["tools"])
    known = _KEYS if tools else {**_KEYS, "tool_choice": ("auto", "none")}
    handed_on = _WISHES if sampled.hands_on else ()
    check_keys(body, known, handed_on)
    check_sampling(body, sampled)
    instructions = read_text(body.get("instructions") or "", "instructions")
    said = [Message("system", instructions)] if instructions else []
    given = body.get("input")
    if isinstance(given, str):
        said.append(Message("user", given))
    else:
        said.extend(_read(read_list(given, "input")))
    if not said:
        raise bad("input must not be empty.", "input")
    return ChatRequest(
        tuple(said),
        tools,
        read_limit(body, "max_output_tokens"),
        read_flag(body, "stream"),
        model=read_text(body.get("model") or "", "model"),
        follows=read_text(body.get("previous_response_id") or "", "previous_response_id"),
        keys={key: body[key] for key in _REPEATED if body.get(key) is not None},
        wishes=_wishes(asked_for(body, known, handed_on)),
    )


def _wishes(asked: dict[str, Any]) -> dict[str, Json]:
    """Translate what is asked for into the names of chat completions."""
    wishes: dict[str, Json] = {}
    for key, value in asked.items():
        match key:
            case "max_output_tokens":
                wishes["max_completion_tokens"] = value
            case "tool_choice" if isinstance(value, dict) and value.get("type") == "function":
                wishes[key] = {"type": "function", "function": {"name": value.get("name")}}
            case "reasoning":
                effort = read_object(value, key).get("effort")
                wishes |= {} if effort is None else {"reasoning_effort": effort}
            case "text":
                wishes |= _text_wishes(read_object(value, key))
            case _:
                wishes[key] = value
    return wishes


def _text_wishes(text: dict[str, Any]) -> dict[str, Json]:
    wishes = {} if text.get("verbosity") is None else {"verbosity": text["verbosity"]}
    form = read_object(text.get("format") or {"type": "text"}, "text.format")
    if form.get("type") == "json_schema":
        schema = {key: value for key, value in form.items() if key != "type"}
        return wishes | {"response_format": {"type": "json_schema", "json_schema": schema}}
    return wishes | ({} if form.get("type") == "text" else {"response_format": form})


def answer(asked: ChatRequest, answered: Answered) -> Json:
    """The ``response`` object."""
    done: dict[str, Json] = {"status": "completed"}
    if answered.cut or answered.withheld:
        why = "max_output_tokens" if answered.cut else "content_filter"
        done = {"status": "incomplete", "incomplete_details": {"reason": why}}
    return _head(asked, answered) | done | {"output": _output(answered), "usage": _usage(answered)}


def events(asked: ChatRequest, answered: Answered) -> Iterator[StreamEvent]:
    """The events of a stream, each with its number."""
    number = 0

    def event(name: str, /, **data: Json) -> StreamEvent:
        nonlocal number
        number += 1
        return StreamEvent({"type": name, "sequence_number": number - 1} | data, name)

    begun = _head(asked, answered) | {"status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for n, item in enumerate(_output(answered)):
        place = {"item_id": item["id"], "output_index": n}
        if item["type"] == "message":
            yield event("response.output_item.added", output_index=n, item=item | {"content": [], **_BEGUN})
            for index, part in enumerate(item["content"]):
                place["content_index"] = index
                key = "refusal" if part["type"] == "refusal" else "text"
                name, more = ("refusal", {}) if key == "refusal" else ("output_text", {"logprobs": []})
                yield event("response.content_part.added", part=part | {key: ""}, **place)
                for text in pieces(part[key]):
                    yield event(f"response.{name}.delta", delta=text, **more, **place)
                yield event(f"response.{name}.done", **{key: part[key]}, **more, **place)
                yield event("response.content_part.done", part=part, **place)
        elif item["type"] == "reasoning":
            yield event("response.output_item.added", output_index=n, item=item | {"summary": []})
            place["summary_index"] = 0
            thought = item["summary"][0]
            yield event("response.reasoning_summary_part.added", part=thought | {"text": ""}, **place)
            for text in pieces(thought["text"]):
                yield event("response.reasoning_summary_text.delta", delta=text, **place)
            yield event("response.reasoning_summary_text.done", text=thought["text"], **place)
            yield event("response.reasoning_summary_part.done", part=thought, **place)
        else:
            opening = item | {"arguments": "", **_BEGUN}
            yield event("response.output_item.added", output_index=n, item=opening)
            for text in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", delta=text, **place)
            said = {"arguments": item["arguments"], "name": item["name"]}
            yield event("response.function_call_arguments.done", **said, **place)
        yield event("response.output_item.done", output_index=n, item=item)
    ended = "response.incomplete" if answered.cut or answered.withheld else "response.completed"
    yield event(ended, response=answer(asked, answered))


def error_event(refused: RefusedError) -> StreamEvent:
    """A refusal in the middle of a stream."""
    said = {"code": refused.code, "message": refused.message, "param": refused.param or None}
    return StreamEvent({"type": "error", "sequence_number": 0} | said, "error")


_BEGUN = {"status": "in_progress"}


def _tools(value: Any) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for n, one in enumerate(read_list(value, "tools")):
        where = f"tools[{n}]"
        if read_object(one, where).get("type") != "function":
            raise unsupported(
                f"{where}.type", one.get("type"), "only functions can be offered to this policy."
            )
        tools.append(offered_tool(one.get("name"), one.get("description"), one.get("parameters"), where))
    return tuple(tools)


def _read(items: list[Any]) -> list[Message]:
    """The messages that a list of items stands for; what an assistant says and calls at one time is one message."""
    said: list[Message] = []
    for n, value in enumerate(items):
        where = f"input[{n}]"
        item = read_object(value, where)
        match item.get("type", "message"):
            case "message":
                one = _message(item, where)
            case "function_call":
                name = read_text(item.get("name"), f"{where}.name")
                arguments = read_arguments(item.get("arguments"), f"{where}.arguments")
                call = ToolCall(name, arguments, read_text(item.get("call_id"), f"{where}.call_id"))
                one = Message("assistant", "", (call,))
            case "function_call_output":
                text, images = read_parts(item.get("output"), f"{where}.output", _TEXTS, _PICTURES)
                answers = read_text(item.get("call_id"), where)
                one = Message("tool", text, tool_call_id=answers, images=images)
            case "reasoning":
                continue  # the session knows by the reply what was thought before it
            case kind:
                raise unsupported(f"{where}.type", kind, "this policy never wrote such an item.")
        if one.role == "assistant" and one.tool_calls and said and said[-1].role == "assistant":
            before = said.pop()
            one = Message("assistant", before.content, (*before.tool_calls, *one.tool_calls))
        said.append(one)
    return said


def _message(item: Mapping[str, Any], where: str) -> Message:
    role = item.get("role")
    if role not in _ROLES:
        raise bad(f"{where}.role is {role!r:.40}; it is one of {', '.join(_ROLES)}.", where)
    pictures = _PICTURES if role == "user" else {}
    content, images = read_parts(item.get("content"), f"{where}.content", _TEXTS, pictures)
    return Message("system" if role == "developer" else role, content, images=images)


def _output(answered: Answered) -> list[Any]:
    items: list[Any] = []
    if thoughts := answered.served.thoughts:
        head = {"id": f"rs_{answered.id}", "type": "reasoning", "encrypted_content": answered.id}
        items.append(head | {"summary": [{"type": "summary_text", "text": thoughts}]})
    if answered.message.content or not answered.message.tool_calls:
        part: Json = {
            "type": "output_text",
            "text": answered.message.content,
            "annotations": [],
            "logprobs": [],
        }
        if refusal := answered.served.refusal:
            part = {"type": "refusal", "refusal": refusal}
        head = {"id": f"msg_{answered.id}", "type": "message", "role": "assistant", "status": "completed"}
        items.append(head | {"content": [part]})
    for n, call in enumerate(answered.message.tool_calls):
        head = {"id": f"fc_{answered.id}_{n}", "type": "function_call", "status": "completed"}
        said = {"call_id": call.id, "name": call.name, "arguments": arguments_text(call)}
        items.append(head | said)
    return items


def _head(asked: ChatRequest, answered: Answered) -> dict[str, Json]:
    return {
        "id": f"resp_{answered.id}",
        "object": "response",
        "created_at": answered.created,
        "model": asked.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "max_output_tokens": asked.max_tokens,
        "temperature": None,
        "top_p": None,
    } | dict(asked.keys)


def _usage(answered: Answered) -> Json:
    given, sampled = answered.prompt_tokens, answered.tokens
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": answered.served.usage.cached or 0},
        "output_tokens": sampled,
        "output_tokens_details": {"reasoning_tokens": answered.served.usage.reasoning or 0},
        "total_tokens": given + sampled,
    }


RESPONSES = Api("/v1/responses", parse, answer, events, error, error_event)
