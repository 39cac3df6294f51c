"""A client that gives each provider exactly what it wants: it shows that the stand-ins can be pleased, and breaks one rule when asked."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from fakes import Stand
from habits import Bad

TOLD = {
    "ledger": "Ledger: each red key lies in drawers b and d.",
    "b": "Drawer b: red key, tag 41.",
    "d": "Drawer d: red key, tag 52.",
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "",
            "parameters": {"type": "object", "properties": {key: {"type": kind}}, "required": [key]},
        },
    }
    for name, key, kind in (("look", "place", "string"), ("hand_over", "tag", "integer"))
]
_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


def post(stand: Stand, body: Mapping[str, Any]) -> tuple[int, Any]:
    """The status and the body that a request is answered with."""
    request = urllib.request.Request(
        f"{stand.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read().decode()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text


def request(stand: Stand, messages: list[Any]) -> dict[str, Any]:
    """A request that the provider takes."""
    provider = stand.provider
    body: dict[str, Any] = {"model": provider.model, "messages": messages, **provider.needs}
    if provider.tools:
        body["tools"] = TOOLS
    return {**body, **dict.fromkeys(provider.required, 4096)}


def begun() -> list[Any]:
    """The first messages."""
    return [{"role": "system", "content": "Use the tools."}, {"role": "user", "content": "Find the red key."}]


def answered(stand: Stand, said: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What follows a reply: the reply as it comes back, and an answer for each of its calls."""
    rules, back = stand.provider.messages, dict(said)
    if back.get("content", "") is None and rules.null_content == "nowhere":
        back["content"] = ""
    if "content" not in back and not rules.missing_content:
        back["content"] = ""
    results = [(call.get("id"), *_asked(call["function"])) for call in back.get("tool_calls", ())]
    if not results:
        content = back["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        text = "".join(part["text"] for part in parts if part["type"] == "text").rpartition("</think>")[2]
        results = [("", *_asked(json.loads(found))) for found in _TAGGED.findall(text)]
        told = "\n".join(result(name, given) for _, name, given in results)
        return [back, *([{"role": "user", "content": told}] if told else [])]
    tools = [
        {"role": "tool", "tool_call_id": i, "content": result(name, given)} for i, name, given in results
    ]
    return [back, *tools]


def _asked(function: Mapping[str, Any]) -> tuple[str, Any]:
    arguments = function["arguments"]
    return function["name"], json.loads(arguments) if isinstance(arguments, str) else arguments


def result(name: str, given: Mapping[str, Any]) -> str:
    """What the desk answers to a call."""
    return TOLD[given["place"]] if name == "look" else f"Handed over: tag {given['tag']}."


def play(stand: Stand) -> list[Any]:
    """The whole conversation, until the model makes no more calls."""
    messages = begun()
    for _ in range(8):
        status, body = post(stand, request(stand, messages))
        assert status == 200, (status, body)
        more = answered(stand, body["choices"][0]["message"])
        messages.extend(more)
        if len(more) == 1:
            return messages
    raise AssertionError("it never came to an end")


def broken(stand: Stand, bad: Bad) -> dict[str, Any]:
    """A good second request in which one rule is broken."""
    messages = begun()
    _, body = post(stand, request(stand, messages))
    said, *results = answered(stand, body["choices"][0]["message"])
    said = {**{key: value for key, value in said.items() if key not in bad.without}, **bad.message}
    calls = said.get("tool_calls") or []
    if calls and "tool_calls" not in bad.message:
        calls[0] = {key: value for key, value in calls[0].items() if key not in bad.call_without}
        calls[0]["id"] = bad.id or calls[0].get("id")
        if bad.what == "call_id":
            results[0]["tool_call_id"] = bad.id
    messages += [said, *([] if bad.unanswered else results), *bad.after]
    if bad.user is not None:
        messages[1]["content"] = bad.user
    made = {**request(stand, messages), **bad.set}
    if bad.tool:
        made["tools"] = json.loads(json.dumps(TOOLS))
        made["tools"][0]["function"]["name"] = bad.tool
    return {key: value for key, value in made.items() if value is not None}
