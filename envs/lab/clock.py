"""The passing of time in a turn: devices heat and cool, other things reach room temperature, plants grow.

Heat follows Newton's cooling: each turn closes a share of the difference to the surroundings, at least a degree.
"""

from __future__ import annotations

from turnwise.envs.lab.matter import ASH, LEFT, ROOM_TEMPERATURE, SOIL, WATER
from turnwise.envs.lab.state import AGES, FLOWER, NOTHING, Laboratory, LabState

_AIR = 30  # percent of the difference that a turn in the air closes; a fridge closes more


def tick(state: LabState) -> LabState:
    """The state one turn later."""
    state = _warm(state)
    return _grow(state) if state.lab.plants else state


def _warm(state: LabState) -> LabState:
    lab = state.lab
    temperature = content = None
    for vessel in lab.vessels:
        before = state.temperature[vessel]
        now = _next(state, vessel, before)
        if now != before:
            temperature = temperature or list(state.temperature)
            temperature[vessel] = now
            inside = state.content[vessel]
            after = _boiled(lab, inside, now) if inside else 0
            if after != inside:
                content = content or list(state.content)
                content[vessel] = after
    if temperature is None:
        return state
    return state._replace(
        temperature=tuple(temperature), content=state.content if content is None else tuple(content)
    )


def _boiled(lab: Laboratory, inside: int, degrees: int) -> int:
    """Return the content of a vessel that has become so warm."""
    _, boils, burns = lab.points(inside)
    if degrees >= burns:
        return ASH
    return LEFT.get(inside, inside) if degrees >= boils else inside


def _next(state: LabState, vessel: int, now: int) -> int:
    lab, target, share = state.lab, ROOM_TEMPERATURE, _AIR
    device = state.device_of(vessel)
    if device != NOTHING and state.running >> device & 1:
        found = lab.props[device].device
        assert found is not None
        target, share = found
    elif lab.props[vessel].insulated:
        return now
    step = -(-abs(target - now) * share // 100)  # rounded up, so that it arrives
    after = now + step if now < target else now - step
    inside = state.content[vessel]
    if inside:  # melting and boiling take a turn, at their temperature
        for point in lab.points(inside)[:2]:
            if now < point < after or after < point < now:
                return point
    return after


def _grow(state: LabState) -> LabState:
    age = None
    for plant in state.lab.plants:
        pot = state.pot_of(plant)
        if pot == NOTHING or state.content[pot] & (SOIL | WATER) != SOIL | WATER:
            continue
        stage = state.stage(plant)
        if stage >= FLOWER and (state.age[plant] >= AGES[-1] or not _bees(state, plant)):
            continue
        age = age or bytearray(state.age)
        age[plant] += 1
    return state if age is None else state._replace(age=bytes(age))


def _bees(state: LabState, plant: int) -> bool:
    """Say whether an open hive is in the plant's room."""
    room = state.room_of(plant)
    return any(state.is_open(hive) and state.room_of(hive) == room for hive in state.lab.hives)
