"""Sub-goals: which are reached, and what the agent must focus on."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from turnwise.envs.lab import circuit
from turnwise.envs.lab.matter import LIQUID, PARTS, ROOM_TEMPERATURE, SOIL, WATER
from turnwise.envs.lab.state import NOTHING, LabGoal, LabState
from turnwise.envs.lab.vocabulary import ThingKind

KINDS_OF_ANIMALS = ("mammal", "bird", "reptile", "amphibian", "insect")
EATERS = ("plants", "animals")
CLASSES = ("animal", "plant", "living", "lifeless", *KINDS_OF_ANIMALS, *EATERS)
"""Classes that ``find`` may ask for, by number."""
FOCUSED = ("focus", "find", "show")
"""Kinds of goals that are reached by a command to focus."""


def suits(state: LabState, goal: LabGoal, thing: int) -> bool:
    """Say whether a thing is one that a goal wants to be focused on; one that eats both eats either."""
    match goal.kind:
        case "focus":
            return thing == goal.a
        case "show":
            return state.content[thing] == goal.a and not state.lab.props[thing].source
        case "find":
            group = CLASSES[goal.a]
            return belongs(state, thing, group) or (group in EATERS and _eats_both(state.lab.props[thing]))
        case _:
            return False


def belongs(state: LabState, thing: int, group: str) -> bool:
    """Say whether a thing belongs to one of the ``CLASSES``."""
    return belongs_to(state.lab.props[thing], group)


def belongs_to(kind: ThingKind, group: str) -> bool:
    """Say whether things of a kind are animals, plants, living or lifeless, animals of an order, or such as
    eat so."""
    if group in KINDS_OF_ANIMALS:
        return kind.order == group
    if group in EATERS:
        return kind.eats == group
    if group == "living":
        return bool(kind.living)
    if group == "lifeless":
        return not kind.living and not kind.fixed and not kind.seed
    return kind.living == group


def _eats_both(kind: ThingKind) -> bool:
    return bool(kind.span) and not kind.eats


def holds(state: LabState, goal: LabGoal) -> bool:
    """Say whether a sub-goal is reached now."""
    a, b = goal.a, goal.b
    match goal.kind:
        case "focus" | "find" | "show":
            return state.focus != NOTHING and suits(state, goal, state.focus)
        case "placed":  # in a device that heats (b = 1) or cools (b = 0)
            return _heats(state, state.device_of(a)) == b
        case "running":
            device = state.device_of(a)
            return device != NOTHING and bool(state.running >> device & 1)
        case "phase":
            return bool(state.content[a]) and state.phase(a) == b
        case "noted" | "warmed":
            return bool(state.noted >> a & 1)
        case "used":
            return bool(state.used >> a & 1)
        case "dried":
            return state.content[a] == b
        case "poured":
            return any(content & PARTS[a] == PARTS[a] for content in state.content) or _made(state, a)
        case "made":
            return _made(state, a)
        case "wired":
            return bool(circuit.ends(state, a))
        case "shining":
            return circuit.shines(state, a, b)
        case "planted":
            pot = state.pot_of(a)
            return pot != NOTHING and bool(state.content[pot] & SOIL)
        case "watered":
            pot = state.pot_of(a)
            return pot != NOTHING and state.content[pot] & (SOIL | WATER) == SOIL | WATER
        case "stage":
            return state.stage(a) >= b
        case "crossed":
            return state.room_of(a) != NOTHING
        case "delivered":
            return state.focus != NOTHING and state.at[state.focus] == len(state.lab.rooms) + a
        case _:
            raise ValueError(f"unknown sub-goal {goal.kind!r}")


def _heats(state: LabState, device: int) -> int:
    found = state.lab.props[device].device if device != NOTHING else None
    return NOTHING if found is None else int(found.target > ROOM_TEMPERATURE)


def _made(state: LabState, substance: int) -> bool:
    return any(
        content == substance and not props.source
        for content, props in zip(state.content, state.lab.props, strict=True)
    )


def advance(state: LabState) -> LabState:
    """The state with every sub-goal counted that is reached, one after the other."""
    goals, done = state.lab.goals, state.done
    while done < len(goals) and holds(state, goals[done]):
        # Each focus answers one sub-goal; what the last one was on is remembered for "delivered".
        if goals[done].kind in FOCUSED and any(goal.kind in FOCUSED for goal in goals[done + 1 :]):
            state = state._replace(focus=NOTHING)
        done += 1
    return state if done == state.done else state._replace(done=done)


_WEIGHTS = {
    "phase": 3,
    "made": 3,
    "shining": 4,
    "stage": 2,
    "crossed": 3,
    "delivered": 3,
    "dried": 3,
    "warmed": 3,
}


@functools.cache
def points(goals: Sequence[LabGoal]) -> Sequence[int]:
    """Return the points of each sub-goal, of 100 in all: what is brought about earns more than what prepares
    it, the last one most.

    >>> points((LabGoal("focus", 1), LabGoal("placed", 1, 1), LabGoal("running", 1), LabGoal("phase", 1, 1)))
    (10, 10, 10, 70)
    """
    weights = [_WEIGHTS.get(goal.kind, 1) for goal in goals]
    weights[-1] += len(goals)
    ends = [round(100 * end / sum(weights)) for end in itertools.accumulate(weights)]
    return tuple([end - start for start, end in itertools.pairwise((0, *ends))])


def score(state: LabState) -> int:
    """The points of the sub-goals that are reached, 0 to 100."""
    return sum(points(state.lab.goals)[: state.done])


def solved(state: LabState) -> bool:
    return state.done == len(state.lab.goals)


def notes(state: LabState, thing: int) -> bool:
    """Say whether measuring a thing now is as its task asks: at a melting point, or at certain degrees, where
    it names these."""
    for goal in state.lab.goals:
        if goal.kind == "warmed" and goal.a == thing:
            return goal.b <= state.temperature[thing] <= goal.c
    melting = LabGoal("noted", thing, LIQUID) in state.lab.goals
    if not melting:
        return True
    content = state.content[thing]
    return bool(content) and state.temperature[thing] == state.lab.points(content)[0]
