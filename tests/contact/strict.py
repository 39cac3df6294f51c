"""Checks a request by a provider's habits, as strictly as the provider does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from habits import Messages, Provider, filled

USUAL = {"role", "content", "name", "tool_calls", "tool_call_id"}
_TAKEN = {"text": ("text", "image_url"), "none": ()}  # types of parts
ROLES = {"system", "developer", "user", "assistant", "tool"}


class Refusal(NamedTuple):
    """Why a request is not taken, and what the provider answers."""

    what: str
    status: int
    body: Any
    headers: Mapping[str, str]


class Fault(NamedTuple):
    """What is wrong with a request, before the provider puts it into words."""

    what: str
    values: Mapping[str, object]


def check(provider: Provider, request: Any, given: Mapping[str, Mapping[str, Any]]) -> Refusal | None:
    """The first thing that the provider refuses; None if it takes the request.

    Args:
        provider: whose habits.
        request: the body.
        given: what was said before, by the id of its first call, or by its text.
    """
    for fault in _faults(provider, request, given):
        answer = provider.refusals.get(fault.what) or provider.refusals["default"]
        values = {
            "param": "",
            "value": "",
            "index": 0,
            "id": "",
            "name": "",
            "what": fault.what,
            **fault.values,
        }
        return Refusal(fault.what, answer.status, filled(answer.body, **values), answer.headers)
    return None


def lost(provider: Provider, messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> int:
    """How many messages lack what the provider asks for and does not insist on."""
    return sum(
        1
        for kept in provider.returns
        if not kept.enforced
        for _ in _not_returned(provider, messages, given, kept)
    )


def _faults(provider: Provider, request: Any, given: Mapping[str, Any]) -> Iterator[Fault]:
    if (
        not isinstance(request, dict)
        or not isinstance(request.get("messages"), list)
        or not request["messages"]
    ):
        yield Fault("malformed", {"param": "messages"})
        return
    yield from _parameters(provider, request)
    yield from _tools(provider, request)
    messages = request["messages"]
    for index, message in enumerate(messages):
        yield from _message(provider.messages, message, index)
        yield from _calls(provider, message, index)
    yield from _order(provider.messages, messages)
    if provider.answered:
        yield from _answers(messages)
    for kept in provider.returns:
        if kept.enforced:
            yield from _not_returned(provider, messages, given, kept)


def _parameters(provider: Provider, request: Mapping[str, Any]) -> Iterator[Fault]:
    asked = {name: value for name, value in request.items() if value is not None}
    for name, value in asked.items():
        values = {"param": name, "value": value}
        if name in provider.refuses:
            yield Fault(provider.refuses[name], values)
        if provider.accepts is not None and name not in provider.accepts:
            yield Fault("unknown", values)
        if name in provider.fixed and value != provider.fixed[name]:
            yield Fault("value", values)
        low, high = provider.ranges.get(name, (float("-inf"), float("inf")))
        if isinstance(value, int | float) and not low <= value <= high:
            yield Fault("value", values)
    for one, other in provider.exclusive:
        if one in asked and other in asked:
            yield Fault("exclusive", {"param": one, "value": other})
    for name in provider.required:
        if name not in asked:
            yield Fault("required", {"param": name})
    for name, value in provider.needs.items():
        if request.get(name) != value and not (name == "stream" and asked.get("stream")):
            yield Fault("needs", {"param": name, "value": value})
    limit = asked.get("max_tokens") or asked.get("max_completion_tokens") or 0
    if provider.most_unstreamed and limit > provider.most_unstreamed and not asked.get("stream"):
        yield Fault("unstreamed", {"param": "max_tokens", "value": limit})


def _tools(provider: Provider, request: Mapping[str, Any]) -> Iterator[Fault]:
    tools = request.get("tools")
    if tools is None:
        return
    if not provider.tools:
        yield Fault("tools", {"param": "tools"})
    if not isinstance(tools, list) or not tools:
        yield Fault("malformed", {"param": "tools"})
        return
    for index, tool in enumerate(tools):
        name = tool.get("function", {}).get("name", "")
        if provider.tool_name and not re.fullmatch(provider.tool_name, name):
            yield Fault("tool_name", {"index": index, "name": name, "param": f"tools[{index}].function.name"})


def _message(rules: Messages, message: Any, index: int) -> Iterator[Fault]:
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        yield Fault("malformed", {"param": f"messages[{index}]", "index": index})
        return
    role, calls = message["role"], bool(message.get("tool_calls"))
    extra = rules.assistant if role == "assistant" else rules.others
    for key in message:
        if extra is not None and key not in USUAL and key not in extra:
            yield Fault("message_key", {"index": index, "param": key, "name": role})
    values = {"index": index, "name": role, "param": f"messages[{index}].content"}
    if "content" not in message:
        if not (calls and rules.missing_content):
            yield Fault("missing_content", values)
        return
    content = message["content"]
    if content is None and not _allowed(rules.null_content, calls):
        yield Fault("null_content", values)
    if content in ("", []) and not _allowed(rules.empty_content, calls):
        yield Fault("empty_content", values)
    if isinstance(content, list):
        yield from _parts(rules, content, role, values)
    elif not isinstance(content, str | None):
        yield Fault("malformed", values)


def _allowed(where: str, calls: bool) -> bool:
    return where == "anywhere" or (where == "beside calls" and calls)


def _parts(rules: Messages, content: list[Any], role: str, values: Mapping[str, object]) -> Iterator[Fault]:
    pictures = [part for part in content if part.get("type") == "image_url"]
    if pictures and (rules.pictures == "none" or (rules.pictures == "user" and role != "user")):
        yield Fault("picture", values)
    elif rules.parts != "any" and any(part.get("type") not in _TAKEN[rules.parts] for part in content):
        yield Fault("parts", values)
    if rules.empty_content != "anywhere" and any(part.get("text") == "" for part in content):
        yield Fault("empty_content", values)


def _calls(provider: Provider, message: Mapping[str, Any], index: int) -> Iterator[Fault]:
    calls = message.get("tool_calls")
    if calls is None:
        if message["role"] == "tool" and not isinstance(message.get("tool_call_id"), str):
            yield Fault("unknown_call", {"index": index})
        return
    if not isinstance(calls, list) or not calls:
        yield Fault("empty_calls", {"index": index, "param": f"messages[{index}].tool_calls"})
        return
    if len(calls) > 1 and not provider.several_calls:
        yield Fault("several_calls", {"index": index})
    for n, call in enumerate(calls):
        where = {"index": index, "id": call.get("id"), "param": f"messages[{index}].tool_calls[{n}]"}
        function = call.get("function", {})
        if not isinstance(function.get("name"), str) or not isinstance(function.get("arguments"), str):
            yield Fault("malformed", where)
        if not isinstance(call.get("id"), str) or (
            provider.call_id and not re.fullmatch(provider.call_id, call["id"])
        ):
            yield Fault("call_id", where)


def _order(rules: Messages, messages: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    roles = [one["role"] for one in messages]
    for index, (before, role) in enumerate(itertools.pairwise(roles), 1):
        if (
            role in ("system", "developer")
            and before not in ("system", "developer")
            and rules.order != "free"
        ):
            yield Fault("order", {"index": index, "name": role})
        if rules.order == "no user after tool" and (before, role) == ("tool", "user"):
            yield Fault("order", {"index": index, "name": role, "value": before})
        same = (before == "assistant") == (role == "assistant")
        if rules.order == "alternate" and before != "system" and role != "tool" and same:
            yield Fault("order", {"index": index, "name": role, "value": before})


def _answers(messages: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Every call is answered, right after the message that makes it, and nothing else is."""
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield Fault("unknown_call", {"index": index, "id": message.get("tool_call_id")})
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            yield Fault("unanswered", {"index": index, "id": open_calls[0]})
        calls = message.get("tool_calls") or ()
        open_calls = [call.get("id") for call in calls]
    if open_calls:
        yield Fault("unanswered", {"index": len(messages), "id": open_calls[0]})


def _not_returned(
    provider: Provider, messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any], kept: Any
) -> Iterator[Fault]:
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        calls = message.get("tool_calls") or ()
        if kept.at == "content":
            if not calls and message.get("content") not in given:
                yield Fault("returned", {"index": index, "param": "content"})
            continue
        if not calls:
            continue
        said = given.get(calls[0].get("id"), {})
        now, then = (calls[0], said.get("tool_calls", [{}])[0]) if kept.at == "call" else (message, said)
        name = calls[0].get("function", {}).get("name")
        if kept.key in then and (
            kept.key not in now or (kept.how == "verbatim" and now[kept.key] != then[kept.key])
        ):
            yield Fault("returned", {"index": index, "param": kept.key, "name": name})
