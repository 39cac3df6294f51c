"""The steps that plans are made of: go, reach, hold, put.

Each function returns the next act towards something, or None where that is so already; ``or`` chains them.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.lab.verbs import Act
from turnwise.envs.lab.world import HELD, NOTHING, LabState


class Stuck(Exception):
    """There is no way any more."""


def go(state: LabState, room: int) -> Act | None:
    return None if room == state.room else Act("go", state.lab.ways[state.room][room][0])


def reach(state: LabState, thing: int) -> Act | None:
    if state.room_of(thing) == NOTHING:
        raise Stuck
    step = go(state, state.room_of(thing))
    closed = state.closed_around(thing)
    return step or (Act("open", closed) if closed != NOTHING else None)


def hold(state: LabState, thing: int) -> Act | None:
    if state.at[thing] == HELD:
        return None
    if state.pot_of(thing) != NOTHING and state.age[thing]:
        raise Stuck  # it has taken root
    return reach(state, thing) or Act("take", thing)


def put(state: LabState, thing: int, place: int) -> Act | None:
    if state.at[thing] == len(state.lab.rooms) + place:
        return None
    step = hold(state, thing) or reach(state, place)
    return step or (Act("put", thing, place) if state.is_open(place) else Act("open", place))


def near(state: LabState, things: Sequence[int]) -> int:
    """The nearest of some things, those in the hands and in this room first."""
    there = [thing for thing in things if state.room_of(thing) != NOTHING]
    if not there:
        raise Stuck
    ways = state.lab.ways[state.room]
    return min(there, key=lambda n: (state.at[n] != HELD, ways[state.room_of(n)][1], n))


def tool(state: LabState, kind: str) -> int:
    return near(state, state.lab.numbers.get(kind, ()))
