"""Changes of a solution: its last fact is another, a step is left out, or its last words are replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from random import Random

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


def with_last_words(
    acts: Sequence[Message], words: Sequence[str], change: Callable[[str], str]
) -> list[Message] | None:
    """Return the acts with something else in the place of the last fact that a task or its world has told; None where they name none.

    A word of the agent's own, such as "Done.", is no fact: whatever stands in its place, the acts before it have earned what is paid.

    >>> acts = [Message("assistant", "buy[item 7]"), Message("assistant", "Done.")]
    >>> [act.content for act in with_last_words(acts, ["item", "7"], lambda fact: "Solution") or ()]
    ['buy[item Solution]', 'Done.']
    """
    known = {fact.lower() for word in words for fact in _FACT.findall(word)}
    for place in reversed(range(len(acts))):
        found = _with_fact(acts[place], change, known)
        if found is not None:
            return [*acts[:place], found, *acts[place + 1 :]]
    return None


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


def _with_fact(
    message: Message, change: Callable[[str], str], known: Collection[str] | None = None
) -> Message | None:
    """The message with its last fact changed, of those that are known if any are named."""
    if message.tool_calls:
        *before, call = message.tool_calls
        arguments = _in_mapping(call.arguments, change, known)
        if arguments is None:
            return None
        return replace(message, tool_calls=(*before, replace(call, arguments=arguments, written="")))
    content = _in_text(message.content, change, known)
    return None if content is None else replace(message, content=content)


def _in_mapping(
    given: Mapping[str, Json], change: Callable[[str], str], known: Collection[str] | None
) -> dict[str, Json] | None:
    """The mapping with its last text or number changed; None where it has none."""
    for name in reversed([*given]):
        value = given[name]
        found: Json | None = None
        if isinstance(value, str):
            found = _in_text(value, change, known)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if known is None or str(int(value)) in known:
                said = change(str(int(value)))
                found = int(said) if said.isascii() and said.isdigit() else said
        elif isinstance(value, dict):
            found = _in_mapping(value, change, known)
        elif isinstance(value, list) and value:
            inner = _in_mapping({"last": value[-1]}, change, known)
            found = None if inner is None else [*value[:-1], inner["last"]]
        if found is not None:
            return {**given, name: found}
    return None


def _in_text(text: str, change: Callable[[str], str], known: Collection[str] | None) -> str | None:
    facts = _FACT.finditer(text, max(0, len(text) - _LONGEST))
    found = [fact for fact in facts if known is None or fact.group().lower() in known]
    if not found:
        return None
    start, end = found[-1].span()
    return f"{text[:start]}{change(text[start:end])}{text[end:]}"
