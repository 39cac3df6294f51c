"""Calls compared with the wanted ones: which are still to be made, and whether those that were made mean the same."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.functioncall.interfaces import functions
from turnwise.envs.functioncall.state import Conversation, FunctionCallState, WantedCall
from turnwise.tasks.core import Json


class CallVerdict(NamedTuple):
    """Verdict on a request: by the data after it, by what was told, and by the calls that were made."""

    state: bool
    answer: bool
    calls: bool

    @property
    def right(self) -> bool:
        return self.state and self.answer


def remaining(made: Sequence[str], wanted: Sequence[WantedCall]) -> list[int]:
    """The numbers of the wanted calls that have not been made. ``made`` are marks; a reading serves all that want it."""
    if not made:
        return list(range(len(wanted)))
    left = Counter(made)
    open_: list[int] = []
    for number, one in enumerate(wanted):
        if left[one.mark] > 0:
            left[one.mark] -= one.function.writes
        else:
            open_.append(number)
    return open_


def calls_left(talk: Conversation, before: FunctionCallState, made: Sequence[str]) -> dict[str, Json]:
    """Details of a turn: how many wanted calls of its request it made, how many are open after it, and the functions that the
    whole conversation requires."""
    wanted = talk.rounds[before.round].wanted
    open_ = len(remaining(made, wanted))
    return {
        "met": max(0, len(remaining(before.made, wanted)) - open_),
        "open": open_,
        "required": sorted({one.call.name for request in talk.rounds for one in request.wanted}),
    }


def equivalent(made: Sequence[str], wanted: Sequence[WantedCall]) -> bool:
    """Say whether the calls that change something are the wanted ones, each as often. Those of one function
    to one thing must come in the same order; other order is free, and so is reading."""
    return _by_thing(made) == _by_thing([one.mark for one in wanted])


def _by_thing(marks: Sequence[str]) -> dict[tuple[str, Json], list[str]]:
    """The marks of calls that change something, by function and thing; those that add things are in no order."""
    found: dict[tuple[str, Json], list[str]] = {}
    for mark in marks:
        thing = _thing(mark)
        if thing is not None:
            found.setdefault(thing, []).append(mark)
    return {thing: sorted(some) if thing[1] is None else some for thing, some in found.items()}


@functools.lru_cache(maxsize=8192)
def _thing(mark: str) -> tuple[str, Json] | None:
    """The function and the thing of a call that changes something."""
    words, _, arguments = mark.partition(" {")
    one = functions()[words]
    if not one.writes:
        return None
    return words, json.loads("{" + arguments)[one.target] if one.target else None
