"""The form of a line of an episode log: of what type each field is, seen before anything is made of it.

Whatever passes here can be read, replayed, counted and shown without a surprise; fields that are not named pass as they are.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

MOST_LINE = 1 << 27
"""Bytes of the longest line that is read as JSON."""
_LARGEST = 1 << 128
Form: TypeAlias = Callable[[Any], bool]


def read_json(line: str | bytes) -> Any:
    """A line's JSON.

    Raises:
        ValueError: it is none, has numbers beyond all bounds, or is longer than ``MOST_LINE``.
    """
    if len(line) > MOST_LINE:
        raise ValueError(f"it has {len(line)} bytes, and {MOST_LINE} is the most that a line may have")
    return _DECODER.decode(line.decode() if isinstance(line, bytes) else line)


def check_form(data: Mapping[str, Any]) -> None:
    """See that each field of a line is of its type.

    Raises:
        ValueError: one is not, or is missing; says which.
    """
    _check(data, _LINE, "")
    _check(data["env"], _ENV, "env.")
    _check(data["task"], _TASK, "task.")
    for name, agent in data["agents"].items():
        _check(agent, _AGENT, f"agents.{name}.")
        for number, turn in enumerate(agent["turns"], 1):
            where = f"agents.{name}.turns.{number}."
            _check(turn, _TURN, where)
            if turn.get("served"):
                _check(turn["served"], _SERVED, f"{where}served.")
            if "memory" in turn:
                _check(turn["memory"], _MEMORY, f"{where}memory.")
            told = turn.get("memory", {}).get("told", ())
            _check_messages([turn["action"], *turn["observation"], *told], where)
            for act in turn.get("acts") or ():
                _check(act, _ACT, f"{where}acts.")
                _check_messages([act["message"]], f"{where}acts.")
        _check_messages(agent["final"], f"agents.{name}.final.")


def _check_messages(messages: Iterable[Any], where: str) -> None:
    for message in messages:
        _check(message, _MESSAGE, where)
        calls = message.get("tool_calls", ())
        for call in calls:
            _check(call, _CALL, f"{where}tool_calls.")
        for extra in (message.get("extra"), *(call.get("extra") for call in calls)):
            if extra is not None:
                _check(extra, _EXTRA, f"{where}extra.")
        for image in message.get("images", ()):
            _check(image, _IMAGE, f"{where}images.")


def _check(value: Any, forms: Mapping[str, Form], where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where.rstrip('.')} is no object")  # noqa: TRY004 (what every check of a line raises)
    for name, form in forms.items():
        key = name.removesuffix("?")
        if key in value:
            if not form(value[key]):
                raise ValueError(f"{where}{key} cannot be {reprlib.repr(value[key]):.80}")
        elif key == name:
            raise ValueError(f"{where}{key} is missing")


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return type(value) is int and -_LARGEST < value < _LARGEST


def _count(value: Any) -> bool:
    return _whole(value) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, bool) or _whole(value) or (type(value) is float and math.isfinite(value))


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _objects(value: Any) -> bool:
    return isinstance(value, list) and {*map(type, value)} <= {dict}


def _ids(value: Any) -> bool:
    """Tokens: numbers from 0 on."""
    return (
        isinstance(value, list)
        and {*map(type, value)} <= {int}
        and (not value or (min(value) >= 0 and max(value) < _LARGEST))
    )


def _logprobs(value: Any) -> bool:
    return isinstance(value, list) and all(map(_number, value))


def _spans(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(span, list) and len(span) == 2 and all(map(_whole, span)) for span in value
    )


def _numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _usage(value: Any) -> bool:
    return isinstance(value, dict) and all(number is None or _number(number) for number in value.values())


def _place(value: Any) -> bool:
    """Of a turn among others: its number, or a word for the one before and for none."""
    return value in ("previous", "root") or (_whole(value) and value >= 0)


def _or_none(form: Form) -> Form:
    return lambda value: value is None or form(value)


_LINE: Mapping[str, Form] = {
    "turnwise": _text,
    "policy": _text,
    "env": _mapping,
    "task_id": _text,
    "task": _mapping,
    "seed": _whole,
    "outcome": _text,
    "end": _or_none(_text),
    "error": _text,
    "metrics": _numbers,
    "update": _or_none(_whole),
    "group": _or_none(_whole),
    "suite?": _text,
    "cause?": _text,
    "agents": lambda value: isinstance(value, dict) and bool(value),
}
_ENV: Mapping[str, Form] = {"entry": _text, "source": _text, "options": _mapping, "file?": _text}
_TASK: Mapping[str, Form] = {"env": _text, "prompt": _text, "options": _mapping}
_AGENT: Mapping[str, Form] = {"turns": _objects, "final": _objects, "chain": _text}
_TURN: Mapping[str, Form] = {
    "action": _mapping,
    "observation": _objects,
    "chain": _text,
    "prompt_ids": _ids,
    "action_ids": _ids,
    "logprobs": _logprobs,
    "versions": _spans,
    "parent?": _place,
    "served?": _mapping,
    "caller?": _or_none(_whole),
    "continues?": _or_none(_whole),
    "memory?": _mapping,
    "scored_ids?": _or_none(_ids),
    "source?": _text,
    "policy_end": _or_none(_text),
    "reward": _number,
    "rewards": _numbers,
    "state_key": _text,
    "bad_action": _truth,
    "details": _mapping,
    "signals?": _numbers,
    "weight?": _number,
    "acts?": _or_none(_objects),
    "advantage?": _number,
    "entropies?": _logprobs,
}
_MEMORY: Mapping[str, Form] = {"asked": _count, "told?": _objects}
_ACT: Mapping[str, Form] = {"message": _mapping, "number": _whole, "turns": _whole, "bad_action": _truth}
_MESSAGE: Mapping[str, Form] = {
    "role": _text,
    "content": _text,
    "tool_calls?": _objects,
    "tool_call_id?": _text,
    "images?": _objects,
    "malformed?": _text,
    "extra?": _or_none(_mapping),
}
_CALL: Mapping[str, Form] = {"name": _text, "arguments": _mapping, "id": _text, "extra?": _or_none(_mapping)}
_EXTRA: Mapping[str, Form] = {"origin": _text, "keys": _mapping}
_SERVED: Mapping[str, Form] = {
    "finish": _text,
    "said?": _text,
    "usage?": _usage,
    "thoughts?": _text,
    "refusal?": _text,
    "model?": _text,
}
_IMAGE: Mapping[str, Form] = {"data": _text, "media_type": _text}
