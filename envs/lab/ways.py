"""The steps that plans are made of: go, reach, take up, put.

Each function returns the next act towards something, or None where that is so already; ``or`` chains them.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.lab.actions import LabAct
from turnwise.envs.lab.state import HELD, NOTHING, LabState


class Stuck(Exception):
    """The goal can no longer be reached."""


def go(state: LabState, room: int) -> LabAct | None:
    return None if room == state.room else LabAct("go", state.lab.ways[state.room][room][0])


def reach(state: LabState, thing: int) -> LabAct | None:
    if state.room_of(thing) == NOTHING:
        raise Stuck
    step = go(state, state.room_of(thing))
    closed = state.closed_around(thing)
    return step or (LabAct("open", closed) if closed != NOTHING else None)


def take_up(state: LabState, thing: int) -> LabAct | None:
    if state.at[thing] == HELD:
        return None
    if state.pot_of(thing) != NOTHING and state.age[thing]:
        raise Stuck  # it has taken root
    return reach(state, thing) or LabAct("take", thing)


def put(state: LabState, thing: int, place: int) -> LabAct | None:
    if state.at[thing] == len(state.lab.rooms) + place:
        return None
    step = take_up(state, thing) or reach(state, place)
    return step or (LabAct("put", thing, place) if state.is_open(place) else LabAct("open", place))


def near(state: LabState, things: Sequence[int]) -> int:
    """The nearest of some things, those in the hands and in this room first."""
    there = [thing for thing in things if state.room_of(thing) != NOTHING]
    if not there:
        raise Stuck
    ways = state.lab.ways[state.room]
    return min(there, key=lambda n: (state.at[n] != HELD, ways[state.room_of(n)][1], n))


def tool(state: LabState, kind: str) -> int:
    return near(state, state.lab.numbers.get(kind, ()))
