"""Actions: the commands, how they are written and read, and what they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.household.state import (
    BURNT,
    COOL,
    FLAG,
    GONE,
    HELD,
    HOT,
    NOTHING,
    House,
    HouseState,
    look_goals,
)
from turnwise.envs.household.vocabulary import ASIDE, PLACES, ROOMS, SWITCHED, THINGS, VERBS
from turnwise.envs.worlds.one_command import Forms
from turnwise.tools.core import ToolError

NAMED = frozenset((*PLACES, *ROOMS, *THINGS, "lamp"))
FORMS = Forms(
    verbs=frozenset(VERBS) - ASIDE,
    names=NAMED,
    traits=frozenset(("hot", "heated", "cold", "cooled", "cleaned", "dirty", "burnt")),
)
_HANDS = frozenset(word for word, verb in VERBS.items() if verb == "inventory")
DONE = {"clean": "clean", "heat": "hot", "cool": "cool"}


class HouseAct(NamedTuple):
    """A verb with the numbers of an object and of a place; -1 where there is none."""

    verb: str
    object: int = NOTHING
    place: int = NOTHING


class Effect(NamedTuple):
    """The state after an act, and what happened: the verb as it was meant."""

    state: HouseState
    act: HouseAct


def read(state: HouseState, words: Sequence[str]) -> HouseAct:
    """Read what a command means here. Names may lack their number where one thing fits.

    Raises:
        ToolError: the verb or a name is unknown.
    """
    verb = VERBS.get(words[0])
    if verb is None:
        verbs = " , ".join(dict.fromkeys(VERBS.values()))
        raise ToolError(f"unknown verb {words[0][:20]} : say {verbs} .")
    if verb == "take" and tuple(words[1:2]) == ("look",):  # "take a look around"
        verb = "look"
    if verb in ("look", "examine") and not _HANDS.isdisjoint(words):  # "check the inventory"
        return HouseAct("inventory")
    thing, place = NOTHING, NOTHING
    house = state.house
    for i, word in enumerate(words[1:], 1):
        known = house.those(word) if word in NAMED else ()
        if not known:
            continue
        thing_named = word in THINGS
        if i + 1 < len(words) and words[i + 1].isdecimal():
            called = words[i + 1]
            if len(called) > 3 or not 1 <= int(called) <= len(known):
                raise ToolError(f"there is no {word} {called[:6]} .")
            number = known[int(called) - 1]
        else:
            number = _nearest(state, thing_named, known)
        if thing_named:
            thing = number if thing == NOTHING else thing
        elif word == "lamp" or place == NOTHING:
            place = number
    if verb == "move":
        verb = "go" if thing == NOTHING else "put"
    elif verb == "go" and place == NOTHING and thing != NOTHING:
        raise ToolError("one goes to a receptacle or a room .")
    elif verb == "look" and (thing, place) != (NOTHING, NOTHING):
        verb = "examine"
    elif words[0] in SWITCHED:
        _check_switch(state, words)
    return HouseAct(verb, thing, place)


def _check_switch(state: HouseState, words: Sequence[str]) -> None:
    lamp, lit = state.house.lamps.get(state.place), bool(state.lit >> state.place & 1)
    if lamp and lit == ("off" not in words):
        raise ToolError(f"{lamp} is {'on' if lit else 'off'} .")


def _nearest(state: HouseState, thing: bool, known: Sequence[int]) -> int:
    if thing:
        return min(known, key=lambda n: (n != state.holding, state.at[n] != state.place))
    here = state.house.room_of[state.place]
    return min(known, key=lambda n: (n != state.place, state.house.room_of[n] != here))


def do(state: HouseState, act: HouseAct) -> Effect:
    """Carry an act out.

    Raises:
        ToolError: it cannot be done here.
    """
    match act.verb:
        case "go":
            after = _go(state, act.place)
        case "open" | "close":
            after, act = _turn(state, act)
        case "take":
            after = _take(state, act)
        case "put":
            after, act = _put(state, act)
        case "clean" | "heat" | "cool":
            after, act = _treat(state, act)
        case "use":
            after, act = _use(state, act.place)
        case "examine":
            after = _examine(state, act)
        case _:
            after = state
    return Effect(look_goals(after), act)


def _go(state: HouseState, place: int) -> HouseState:
    house = state.house
    if place == NOTHING:
        raise ToolError("go where ?")
    if place == state.place:
        raise ToolError(f"you are at {house.places[place]} .")
    here, room = house.room_of[state.place], house.room_of[place]
    if place < house.receptacles and room != here:
        raise ToolError(f"{house.places[place]} is not in this room .")
    if room != here and room not in house.next_to[here]:
        raise ToolError(f"no door leads to {house.places[place]} .")
    return HouseState._make((house, place, *state[2:]))  # as _replace, in half the time


def _turn(state: HouseState, act: HouseAct) -> tuple[HouseState, HouseAct]:
    place = _here(state, act.place)
    if not state.house.openable[place]:
        raise ToolError(f"{state.house.places[place]} cannot be opened .")
    bit, opens = 1 << place, act.verb == "open"
    if bool(state.opened & bit) == opens:
        raise ToolError(f"{state.house.places[place]} is {'open' if opens else 'closed'} .")
    return state._replace(opened=state.opened ^ bit), act._replace(place=place)


def _take(state: HouseState, act: HouseAct) -> HouseState:
    house = state.house
    if act.object == NOTHING:
        raise ToolError("take what ?")
    if state.holding != NOTHING:
        raise ToolError(f"you hold {house.objects[state.holding]} .")
    if act.place not in (NOTHING, state.place) or not state.can_reach(act.object):
        raise ToolError(f"{house.objects[act.object]} is not here .")
    return state._replace(at=_with(state.at, act.object, HELD), holding=act.object)


def _put(state: HouseState, act: HouseAct) -> tuple[HouseState, HouseAct]:
    held = _held(state, act.object)
    place = _here(state, act.place)
    if not state.is_open(place):
        raise ToolError(f"{state.house.places[place]} is closed .")
    lost = state.house.irreversible and state.house.props[place].does == "trash"
    after = state._replace(at=_with(state.at, held, GONE if lost else place), holding=NOTHING)
    return after, HouseAct("put", held, place)


def _treat(state: HouseState, act: HouseAct) -> tuple[HouseState, HouseAct]:
    house, held = state.house, _held(state, act.object)
    place = _here(state, act.place)
    if house.props[place].does != act.verb:
        raise ToolError(f"{house.places[place]} does not {act.verb} .")
    if act.verb not in house.can(held):
        raise ToolError(f"{house.objects[held]} is nothing to {act.verb} .")
    flags = state.flags[held]
    if act.verb == "heat" and house.irreversible and flags & HOT:
        flags |= BURNT
    flags = flags & ~(HOT | COOL) | FLAG[act.verb] if act.verb != "clean" else flags | FLAG["clean"]
    return state._replace(flags=_with(state.flags, held, flags)), HouseAct(act.verb, held, place)


def _use(state: HouseState, lamp: int) -> tuple[HouseState, HouseAct]:
    if state.place not in state.house.lamps or lamp not in (NOTHING, state.place):
        raise ToolError("there is no lamp here .")
    return state._replace(lit=state.lit ^ 1 << state.place), HouseAct("use", place=state.place)


def _examine(state: HouseState, act: HouseAct) -> HouseState:
    house = state.house
    room = house.receptacles + house.room_of[state.place]
    if act.object not in (NOTHING, state.holding) and not state.can_reach(act.object):
        raise ToolError(f"{house.objects[act.object]} is not here .")
    if act.object == NOTHING and act.place not in (NOTHING, state.place, room):
        raise ToolError(f"you are not at {house.places[act.place]} .")
    return state


def _here(state: HouseState, place: int) -> int:
    if state.place >= state.house.receptacles:
        raise ToolError("go to a receptacle first .")
    if place not in (NOTHING, state.place):
        raise ToolError(f"you are not at {state.house.places[place]} .")
    return state.place


def _held(state: HouseState, thing: int) -> int:
    if state.holding == NOTHING:
        raise ToolError("you hold nothing .")
    if thing not in (NOTHING, state.holding):
        raise ToolError(f"you do not hold {state.house.objects[thing]} .")
    return state.holding


def _with(values: bytes, index: int, value: int) -> bytes:
    return b"%b%c%b" % (values[:index], value, values[index + 1 :])


def possible(state: HouseState) -> list[HouseAct]:
    """Every act that can be carried out here and changes something."""
    house, here = state.house, state.place
    room = house.room_of[here]
    acts = [HouseAct("go", place=place) for place in house.in_room[room] if place != here]
    acts += [HouseAct("go", place=house.receptacles + other) for other in house.next_to[room]]
    if here >= house.receptacles:
        return acts
    props, held = house.props[here], state.holding
    if props.openable:
        acts.append(HouseAct("close" if state.is_open(here) else "open", place=here))
    if held == NOTHING:
        acts += [HouseAct("take", thing, here) for thing in state.reach]
    else:
        if state.is_open(here):
            acts.append(HouseAct("put", held, here))
        if props.does in FLAG and props.does in house.can(held):
            acts.append(HouseAct(props.does, held, here))
    if here in house.lamps:
        acts.append(HouseAct("use", place=here))
    return acts


_FULL = {
    "go": "go to {p}", "open": "open {p}", "close": "close {p}", "take": "take {o} from {p}",
    "put": "put {o} in/on {p}", "clean": "clean {o} with {p}", "heat": "heat {o} with {p}",
    "cool": "cool {o} with {p}", "use": "use {l}",
}  # fmt: skip
_COMPACT = {verb: text.replace(" to", "").partition(" from")[0].partition(" in/on")[0].partition(" with")[0]
            for verb, text in _FULL.items()}  # fmt: skip


def write(house: House, act: HouseAct) -> str:
    """An act as a command."""
    forms = _FULL if house.full else _COMPACT
    if act.verb not in forms:
        return act.verb
    thing = house.objects[act.object] if act.object != NOTHING else ""
    place = house.places[act.place] if act.place != NOTHING else ""
    return forms[act.verb].format(o=thing, p=place, l=house.lamps.get(act.place, "lamp"))
