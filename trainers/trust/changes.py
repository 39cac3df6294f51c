"""Changes of a solution: its last fact is another, a step is left out, or its last words are replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from turnwise.envs.messages import Message
from turnwise.tasks.core import Json

_FACT = re.compile(r"[^\W_]+")
_LONGEST = 4000  # characters of a message in which a fact is looked for


def other_fact(fact: str, words: Sequence[str], rng: Random) -> str:
    """Return another fact of the same kind: the next number, or another word that was seen.

    >>> other_fact("41", ["red"], Random(0)), other_fact("red", ["blue", "red"], Random(0)), other_fact("red", [], Random(0))
    ('42', 'blue', 'redx')
    """
    if fact.isascii() and fact.isdigit():
        return str(int(fact[:18]) + 1)
    others = [word for word in words if word.lower() != fact.lower() and not word.isdigit()]
    return rng.choice(others) if others else f"{fact}x"


def with_last_fact(message: Message, words: Sequence[str], rng: Random) -> Message | None:
    """Return the message with the last fact in it changed: of its last call's arguments, else of its words; None where it has none.

    >>> with_last_fact(Message("assistant", "buy[item 7]"), (), Random(0)).content
    'buy[item 8]'
    """
    return _with_fact(message, lambda fact: other_fact(fact, words, rng))


def with_last_words(message: Message, text: str) -> Message:
    """Return the message with this text in the place of its last fact; it is the text where there is none.

    >>> with_last_words(Message("assistant", "answer[Ghent]"), "Solution").content, with_last_words(Message("assistant", "!"), ".").content
    ('answer[Solution]', '.')
    """
    return _with_fact(message, lambda fact: text) or Message("assistant", text)


def without_step(acts: Sequence[Message], place: int) -> list[Message]:
    """Return the acts without one of them."""
    return [act for n, act in enumerate(acts) if n != place]


def changed_last(acts: Sequence[Message], words: Sequence[str], rng: Random) -> list[Message] | None:
    """Return the acts with the last fact among them changed; None where none of them has one."""
    for place in reversed(range(len(acts))):
        found = with_last_fact(acts[place], words, rng)
        if found is not None and found != acts[place]:
            return [*acts[:place], found, *acts[place + 1 :]]
    return None


def _with_fact(message: Message, change: Any) -> Message | None:
    if message.tool_calls:
        *before, call = message.tool_calls
        arguments = _in_mapping(call.arguments, change)
        if arguments is None:
            return None
        return replace(message, tool_calls=(*before, replace(call, arguments=arguments, written="")))
    content = _in_text(message.content, change)
    return None if content is None else replace(message, content=content)


def _in_mapping(given: Mapping[str, Json], change: Any) -> dict[str, Json] | None:
    """The mapping with its last text or number changed; None where it has none."""
    for name in reversed([*given]):
        value = given[name]
        found: Json | None = None
        if isinstance(value, str):
            found = _in_text(value, change)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            said = change(str(int(value)))
            found = int(said) if said.isascii() and said.isdigit() else said
        elif isinstance(value, dict):
            found = _in_mapping(value, change)
        elif isinstance(value, list) and value:
            inner = _in_mapping({"last": value[-1]}, change)
            found = None if inner is None else [*value[:-1], inner["last"]]
        if found is not None:
            return {**given, name: found}
    return None


def _in_text(text: str, change: Any) -> str | None:
    found = list(_FACT.finditer(text, max(0, len(text) - _LONGEST)))
    if not found:
        return None
    start, end = found[-1].span()
    return f"{text[:start]}{change(text[start:end])}{text[end:]}"
