"""Puts a move into the form in which a provider answers: calls, thoughts, ids, what a limit leaves of them, and a stream of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from habits import Provider, Says
from knowing import WRONG, Move

CALL_WORDS = 16  # what a call costs of the limit
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Shaped(NamedTuple):
    """A choice of a reply, and what it cost."""

    message: dict[str, Any]
    finish: str
    words: int
    thought: int


def shaped(provider: Provider, says: Says, move: Move, number: int, limit: int | None) -> Shaped:
    """The reply of this number; a limit cuts thoughts first, and a call in the middle of its arguments."""
    thoughts = _thoughts(says, number) if says.thoughts != "none" else ""
    room = max(limit, 0) if limit is not None else 10**9
    thought = min(len(thoughts.split()), room)
    room -= thought
    wanted = CALL_WORDS * len(move.calls) + len(move.words.split())
    cut = room < wanted
    message = _message(provider, says, move, number, thoughts if room > 0 else _first(thoughts, thought))
    if cut:
        _cut(message, says, room)
    finish = "length" if cut else says.finish if move.calls and says.calls == "native" else "stop"
    return Shaped(message, finish, thought + min(wanted, room), thought)


def _thoughts(says: Says, number: int) -> str:
    weighed = ""
    if says.weighed:
        weighed = (
            f" Perhaps <tool_call>{json.dumps(WRONG)}</tool_call> or [hand_over(tag=1)] or "
            "<function=hand_over><parameter=tag>1</parameter></function>? No, I look first."
        )
    filler = " ".join("so" for _ in range(max(says.words - 4 - len(weighed.split()), 0)))
    return f"Thought {number}:{weighed} {filler} then."


def _first(text: str, words: int) -> str:
    return " ".join(text.split()[:words])


def _message(provider: Provider, says: Says, move: Move, number: int, thoughts: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": move.words, **says.extra}
    if move.calls and says.calls == "text":
        message["content"] = "\n".join(
            f"<tool_call>\n{json.dumps({'name': name, 'arguments': dict(given)})}\n</tool_call>"
            for name, given in move.calls
        )
    elif move.calls:
        message["tool_calls"] = [_call(says, number, n, one) for n, one in enumerate(move.calls)]
        message["content"] = {"null": None, "empty": "", "text": "I shall look.", "left out": None}[
            says.beside
        ]
        if says.beside == "left out":
            del message["content"]
    _think(message, says, thoughts, number)
    for kept in provider.returns:
        if kept.at == "call" and kept.key == "extra_content" and "tool_calls" in message:
            message["tool_calls"][0]["extra_content"] = {
                "google": {"thought_signature": f"c2ln{number:04d}=="}
            }
    return message


def _call(says: Says, number: int, n: int, call: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    name, given = call
    arguments: Any = json.dumps(dict(given)) if says.arguments == "text" else dict(given)
    made = {
        "id": _id(says.ids, number, n),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return {**made, "index": n} if says.ids == "numbered" else made


def _id(kind: str, number: int, n: int) -> str:
    serial = number * 16 + n
    letters = "".join(
        LETTERS[(serial * 7 + serial // 62**place * 31 + place * 5) % 62] for place in range(24)
    )
    return {
        "call": f"call_{serial:04d}{letters[:20]}",
        "nine": f"{serial:04d}{letters[:5]}",
        "toolu": f"toolu_01{serial:04d}{letters[:18]}",
        "digits": f"{serial:09d}",
        "numbered": f"call_{serial:08d}",
        "zero": "0",
        "empty": "",
    }[kind]


def _think(message: dict[str, Any], says: Says, thoughts: str, number: int) -> None:
    if says.thoughts in ("reasoning_content", "reasoning"):
        message[says.thoughts] = thoughts
    elif says.thoughts == "reasoning_details":
        message["reasoning"] = thoughts
        message["reasoning_details"] = [
            {"type": "reasoning.text", "text": thoughts, "format": "unknown", "index": 0},
            {
                "type": "reasoning.encrypted",
                "data": f"ZW5j{number:04d}",
                "format": "google-gemini-v1",
                "index": 1,
            },
        ]
    elif says.thoughts in ("think text", "open think text"):
        opened = "<think>\n" if says.thoughts == "think text" else ""
        message["content"] = f"{opened}{thoughts}\n</think>\n\n{message.get('content') or ''}"
    elif says.thoughts == "thinking parts":
        text = message.get("content") or ""
        parts: list[dict[str, Any]] = [{"type": "thinking", "thinking": [{"type": "text", "text": thoughts}]}]
        message["content"] = [*parts, *([{"type": "text", "text": text}] if text else [])]


def _cut(message: dict[str, Any], says: Says, room: int) -> None:
    """Take from a message what there is no room for: calls that are not whole, and words."""
    calls = message.pop("tool_calls", [])
    whole, rest = divmod(room, CALL_WORDS)
    kept = calls[:whole]
    if rest and whole < len(calls) and isinstance(calls[whole]["function"]["arguments"], str):
        kept.append(calls[whole])
        calls[whole]["function"]["arguments"] = calls[whole]["function"]["arguments"][:-3]
    if kept:
        message["tool_calls"] = kept
        return
    content = message.get("content")
    if says.thoughts in ("think text", "open think text") and isinstance(content, str):
        head, _, tail = content.partition("\n</think>\n\n")
        message["content"] = f"{head}\n</think>\n\n{tail[: room * 2]}" if room else head
    elif says.thoughts != "thinking parts":
        message["content"] = content[: room * 2] if isinstance(content, str) else ""


def chunks(message: Mapping[str, Any], finish: str, around: Mapping[str, Any], usage: Any) -> Iterator[bytes]:
    """The same message as events of a stream, with every text in two pieces."""
    yield _event(around, {"role": "assistant", "content": ""}, None)
    for key, value in message.items():
        if key in ("role", "tool_calls") or value is None:
            continue
        for piece in _halves(value):
            yield _event(around, {key: piece}, None)
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        first, second = (
            _halves(arguments) if isinstance(arguments, str) and len(arguments) > 1 else (arguments, "")
        )
        head = {**call, "index": index, "function": {**call["function"], "arguments": first}}
        yield _event(around, {"tool_calls": [head]}, None)
        yield _event(around, {"tool_calls": [{"index": index, "function": {"arguments": second}}]}, None)
    yield _event(around, {}, finish)
    if usage is not None:
        yield b"data: " + json.dumps({**around, "choices": [], "usage": usage}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _halves(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str) and len(value) > 1:
        return value[: len(value) // 2], value[len(value) // 2 :]
    return (value,)


def _event(around: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return b"data: " + json.dumps({**around, "choices": [choice]}).encode() + b"\n\n"
