"""Rendering of observations: full sentences, or compact lines for small models.

In compact text every word has a space behind it, so that a tokeniser that keeps words with their space has
one token for each, wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from turnwise.envs.household.actions import DONE, HouseAct
from turnwise.envs.household.orders import order_text
from turnwise.envs.household.state import BURNT, CLEAN, COOL, HOT, NOTHING, House, HouseGoal, HouseState
from turnwise.envs.household.vocabulary import HOLLOW

SYSTEM = {
    "compact": "house : go , open , close , take , put , clean , heat , cool , use .",
    "full": (
        "You are in a house. Do what you are asked to do, one command per turn: go to X, open X, close X, "
        "take O from X, put O in/on X, clean O with X, heat O with X, cool O with X, use X, look, inventory. "
        "You hold at most one object, and see only what is where you are."
    ),
}
TAGS = (
    " Begin each turn with a thought between tags: <planning> (what to do overall), <explore> (try something new), "
    "<reflection> (why the last command was refused) or <monitor> (go on as planned)."
)
_FLAGS = tuple(
    " ".join(
        word for bit, word in ((CLEAN, "clean"), (HOT, "hot"), (COOL, "cool"), (BURNT, "burnt")) if n & bit
    )
    for n in range(16)
)
_SPACED = re.compile(r" ([.,:?])")
_ADJECTIVE = {"clean": "clean ", "heat": "hot ", "cool": "cool "}


def ask(goals: Sequence[HouseGoal], full: bool) -> str:
    """Put the goals into words.

    >>> ask([HouseGoal("clean", "mug", "shelf"), HouseGoal("light", "book")], full=False)
    'put clean mug in shelf ; examine book with lamp .'
    """
    if full:
        return " ".join(_sentence(goal) for goal in goals)
    return " ; ".join(_clause(goal) for goal in goals) + " ."


def _clause(goal: HouseGoal) -> str:
    if goal.kind == "light":
        return f"examine {goal.thing} with lamp"
    return (
        f"put {'two ' if goal.kind == 'two' else _ADJECTIVE.get(goal.kind, '')}{goal.thing} in {goal.place}"
    )


def _sentence(goal: HouseGoal) -> str:
    match goal.kind:
        case "light":
            return f"Examine {_a(goal.thing)} under a lamp."
        case "two":
            return f"Put one {goal.thing} {_at(goal.place)}, and then another one."
        case _:
            return f"Put {_a(_ADJECTIVE.get(goal.kind, '') + goal.thing)} {_at(goal.place)}."


def _at(place: str) -> str:
    return f"{'in' if place in HOLLOW else 'on'} {_a(place)}"


def opening(state: HouseState) -> str:
    """The first observation: the task, and what is to be seen."""
    house, lines = state.house, [state.house.task.prompt]
    lines.append(describe(state))
    if house.orders:
        lines.append(order_text(house, 0))
    if house.known and house.full:
        lines += (_contents(state, place) for place in range(house.receptacles))
    elif house.known:
        lines += (f"{lamp} {house.places[place]} ." for place, lamp in house.lamps.items())
        lines += (
            f"{_named(state, thing)} {house.places[place]} ."
            for place in range(house.receptacles)
            for thing in state.inside(place)
        )
    return "\n".join(lines)


def describe(state: HouseState) -> str:
    """Describe what one sees from here."""
    house, place = state.house, state.place
    if place < house.receptacles:
        if state.is_open(place):
            return _contents(state, place)
        return f"The {house.places[place]} is closed." if house.full else f"{house.places[place]} : closed ."
    room = house.room_of[place]
    told = house.told.get(room)
    if told is None:
        told = house.told[room] = _room(house, room)
    return told


def _room(house: House, room: int) -> str:
    """Describe what there is in a room, which stays the same."""
    here = [house.places[number] for number in house.in_room[room]]
    doors = [house.rooms[other] for other in house.next_to[room]]
    if house.full:
        ways = f" Doors lead to {_list(doors)}." if doors else ""
        return f"You are in {house.rooms[room]}. You see {_list(here)}.{ways}"
    return f"{house.rooms[room]} : {' , '.join((*here, *doors))} ."


def tell(state: HouseState, act: HouseAct) -> str:
    """Tell what an act led to."""
    match act.verb:
        case "go" | "open" | "look":
            return describe(state)
        case "examine":
            return describe(state) if act.object == NOTHING else _name(state, act.object)
        case "put":
            return describe(state)
        case "close":
            return describe(state)
        case "use":
            return _lamp(state)
        case _:
            return _hands(state, act)


def _hands(state: HouseState, act: HouseAct) -> str:
    held = "nothing" if state.holding == NOTHING else _named(state, state.holding)
    if not state.house.full:
        return f"hold {held} ."
    done = f"You {act.verb} it. " if act.verb in DONE else ""
    return f"{done}You hold {held}."


def _lamp(state: HouseState) -> str:
    lamp, lit = state.house.lamps[state.place], state.lit >> state.place & 1
    return (
        f"The {lamp} is {'on' if lit else 'off'}."
        if state.house.full
        else f"{lamp} {'on' if lit else 'off'} ."
    )


def _name(state: HouseState, number: int) -> str:
    return f"This is {_named(state, number)}." if state.house.full else f"{_named(state, number)} ."


def _contents(state: HouseState, place: int) -> str:
    names = [_named(state, number) for number in state.inside(place)]
    if place in state.house.lamps:
        names.insert(0, state.house.lamps[place])
    if state.house.full:
        return f"In/on the {state.house.places[place]} you see {_list(names)}."
    return f"{state.house.places[place]} : {' , '.join(names) or 'nothing'} ."


def _named(state: HouseState, number: int) -> str:
    flags, name = state.flags[number], state.house.objects[number]
    return f"{_FLAGS[flags]} {name}" if flags else name


def refuse(house: House, cause: str) -> str:
    """A refusal, in the style of the house."""
    return _SPACED.sub(r"\1", cause[0].upper() + cause[1:]) if house.full else cause


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def _a(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"
