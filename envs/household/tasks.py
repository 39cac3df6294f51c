"""Tasks of the household: knobs → rooms, objects and goals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random
from typing import Any, TypeAlias

from turnwise.envs.household.knobs import GoalKind, HouseholdKnobs
from turnwise.envs.household.orders import TASK, drawn_orders
from turnwise.envs.household.render import ask
from turnwise.envs.household.solver import distance
from turnwise.envs.household.state import FLAG, House, HouseGoal, begin
from turnwise.envs.household.vocabulary import NEEDS, PLACES, ROOMS, THINGS, things
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task, derive_rng

ENV = "turnwise/Household-v0"
_SALT = 0  # with it, each split has goals of each kind even in the small vocabulary
_PATIENCE = 200  # houses that one kind of goal is tried in
_DRAWS = 20  # goals that are tried in one house


def draw_task(rng: Random, split: Split, knobs: HouseholdKnobs) -> Task:
    """A task that no other split can draw, and that can be solved.

    Its (first) goal's kind is drawn before everything else, and given up only where nothing fits it.
    """
    kinds = rng.sample(knobs.kinds, len(knobs.kinds))
    attempts = itertools.count()

    def draw(rng: Random) -> Task | None:
        first = kinds[next(attempts) // _PATIENCE % len(kinds)]
        rooms = _rooms(rng, split, knobs)
        if knobs.orders:
            return _day(rng, split, rooms, knobs)
        drawn = (_goals(rng, rooms, first, knobs) for _ in range(_DRAWS))
        goals = next((some for some in drawn if some and in_split(split, ENV, _SALT, sorted(some))), None)
        if goals is None:
            return None
        return _long_enough(_task(rng, rooms, goals, knobs), knobs)

    return first_drawn(draw, rng, split, "household")


def _day(rng: Random, split: Split, rooms: Rooms, knobs: HouseholdKnobs) -> Task | None:
    """A day of orders; None where too little fits, or another split owns it."""
    bare = _task(rng, rooms, [], knobs)
    homes = [name for _, inside in rooms for name in inside]
    does = [PLACES[name].does for name in homes]
    orders = drawn_orders(rng, homes, does, bare.options["objects"], knobs.orders, knobs.back)
    if orders is None or not in_split(split, ENV, _SALT, "orders", orders):
        return None
    day = {"orders": orders, "hidden": knobs.hidden, "lure": knobs.lure}
    return _long_enough(Task(ENV, TASK[knobs.text], {**bare.options, **day}), knobs)


def _long_enough(task: Task, knobs: HouseholdKnobs) -> Task | None:
    """The task with the length of its solution; None where it is too short or too long."""
    length = distance(begin(House(task)))
    low, high = knobs.horizon
    if not low <= length <= min(high, knobs.turn_limit):
        return None
    return Task(ENV, task.prompt, task.options, {"turns": int(length)})


def without_thing(task: Task, rng: Random) -> Task | None:
    """Return a task of the same house whose first goal asks for something that is not there; None where everything is."""
    if not task.options["goals"]:
        return None
    (kind, _, place), *others = task.options["goals"]
    there = {name for name, _ in task.options["objects"]}
    absent = [name for name in THINGS if name not in there and (kind not in FLAG or kind in THINGS[name].can)]
    if not absent:
        return None
    goals = [HouseGoal(kind, rng.choice(sorted(absent)), place), *(HouseGoal(*goal) for goal in others)]
    options = {**task.options, "goals": [list(goal) for goal in goals]}
    return Task(ENV, ask(goals, task.options["text"] == "full"), options, task.gold)


Rooms: TypeAlias = list[tuple[str, list[str]]]


def _rooms(rng: Random, split: Split, knobs: HouseholdKnobs) -> Rooms:
    """The rooms of a house with what stands in them; a function of the split and the house's number.

    No two splits share a house, unless they are meant to (``seen``).
    """
    owner = Split.TRAIN if knobs.seen else split
    number = rng.randrange(knobs.layouts or 1_000_000)
    rng = derive_rng(ENV, "house", owner.value, number, knobs.rooms, knobs.receptacles, knobs.kinds)
    while not in_split(owner, ENV, rooms := _furnish(rng, knobs)):
        pass
    return rooms


def _furnish(rng: Random, knobs: HouseholdKnobs) -> Rooms:
    fit = sorted({room for kind in knobs.kinds for room in NEEDS[kind]})
    kinds = [rng.choice(fit) for _ in range(knobs.rooms)]
    if knobs.rooms >= len(ROOMS):
        kinds[: len(ROOMS)] = rng.sample(list(ROOMS), len(ROOMS))
    rooms: Rooms = [(kind, list(ROOMS[kind][0])) for kind in kinds]
    have = sum(len(inside) for _, inside in rooms)
    for extra in range(max(knobs.rooms, knobs.receptacles - have)):
        kind, inside = rooms[extra % len(rooms)]
        inside.append(rng.choice([name for name in ROOMS[kind][1] if inside.count(name) < 4]))
    for _, inside in rooms:
        rng.shuffle(inside)
        inside.sort(key=_first_places(inside).__getitem__)
    return rooms


def _first_places(names: Sequence[str]) -> dict[str, int]:
    return {name: -place for place, name in enumerate(reversed(names))}


def _goals(rng: Random, rooms: Rooms, first: GoalKind, knobs: HouseholdKnobs) -> list[HouseGoal] | None:
    """Goals that are possible in these rooms, each about another kind of thing."""
    have = {kind for kind, _ in rooms}
    kinds = [kind for kind in knobs.kinds if have & set(NEEDS[kind])]
    if first not in kinds:
        return None
    places = sorted({name for _, inside in rooms for name in inside if not PLACES[name].does})
    names = [name for name in things(knobs.vocabulary) if have & set(THINGS[name].rooms)]
    rng.shuffle(names)
    goals: list[HouseGoal] = []
    for name in names:
        fit = [kind for kind in kinds if kind in ("place", "two", "light") or kind in THINGS[name].can]
        fit = fit if goals else [kind for kind in fit if kind == first]
        if fit and places and len(goals) < knobs.goals:
            kind = rng.choice(fit)
            goals.append(HouseGoal(kind, name, "" if kind == "light" else rng.choice(places)))
    return goals if len(goals) == knobs.goals else None


def _task(rng: Random, rooms: Rooms, goals: Sequence[HouseGoal], knobs: HouseholdKnobs) -> Task:
    options: dict[str, Json] = {
        "rooms": [[kind, inside] for kind, inside in rooms],
        "doors": [[rng.randrange(max(0, room - 3), room), room] for room in range(1, len(rooms))],
        "objects": _objects(rng, rooms, goals, knobs),
        "goals": [list(goal) for goal in goals],
        **{name: getattr(knobs, name) for name in ("text", "commands", "turn_limit", "irreversible", "slip")},
        "known": knobs.view == "known",
    }
    return Task(ENV, ask(goals, knobs.text == "full"), options)


def _objects(rng: Random, rooms: Rooms, goals: Sequence[HouseGoal], knobs: HouseholdKnobs) -> list[list[Any]]:
    """Objects with their receptacles. None of those asked for begins where it shall come to."""
    homes = [(kind, name) for kind, inside in rooms for name in inside]
    have = {kind for kind, _ in rooms}
    asked = {goal.thing: goal for goal in goals}
    names = [goal.thing for goal in goals for _ in range(2 if goal.kind == "two" else 1)]
    others = [name for name in things(knobs.vocabulary) if have & set(THINGS[name].rooms)]
    while len(names) < knobs.objects:
        name = rng.choice(others)
        if name not in asked or (asked[name].kind != "two" and rng.random() < 0.3):
            names.append(name)
        elif set(others) <= set(asked):
            break
    objects: list[list[Any]] = []
    for name in names:
        goal = asked.get(name)
        free = [
            place
            for place, (room, kind) in enumerate(homes)
            if room in THINGS[name].rooms
            and PLACES[kind].does in ("", "use", "clean")
            and (goal is None or kind != goal.place)
        ]
        if not free:
            free = [p for p, (_, kind) in enumerate(homes) if goal is None or kind != goal.place]
        objects.append([name, rng.choice(free)])
    rng.shuffle(objects)
    return objects
