"""Connections between things. A connection joins a wire with something; each thing has two ends."""

from __future__ import annotations

from turnwise.envs.lab.state import NOTHING, LabState


def ends(state: LabState, thing: int) -> list[int]:
    """List the things that a thing is connected with."""
    return [b if a == thing else a for a, b in state.wires if thing in (a, b)]


def loop(state: LabState, thing: int) -> list[int]:
    """The closed loop through a thing, all in one room; empty where there is none."""
    way, last, now = [thing], NOTHING, thing
    while True:
        following = [other for other in ends(state, now) if other != last]
        if not following or len(ends(state, thing)) < 2:
            return []
        last, now = now, following[0]
        if now == thing:
            break
        way.append(now)
    room = state.room_of(thing)
    return way if all(state.room_of(other) == room for other in way) else []


def sources(state: LabState, way: list[int]) -> list[int]:
    """The things of a loop that drive a current now."""
    lab = state.lab
    return [
        thing
        for thing in way
        if lab.props[thing].part == "battery"
        or (lab.props[thing].part == "solar" and state.room_of(thing) == lab.outdoors)
    ]


def shines(state: LabState, lamp: int, source: int = NOTHING) -> bool:
    """Say whether a lamp is lit, by this source if one is named."""
    way = loop(state, lamp)
    found = sources(state, way)
    if not all(state.lab.props[thing].conducts for thing in way):
        return False
    return source in found if source != NOTHING else bool(found)


def tests(state: LabState, thing: int) -> bool:
    """Say whether a thing is in a loop with a source and a lamp, so that one sees whether it conducts."""
    way = loop(state, thing)
    return bool(sources(state, way)) and any(state.lab.props[other].part == "lamp" for other in way)
