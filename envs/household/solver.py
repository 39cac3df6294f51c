"""Choice of what to do next: a rule that solves every solvable state, the length of its way, and an imperfect
scripted policy.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from random import Random

from turnwise.envs.household.actions import HouseAct, do, possible
from turnwise.envs.household.orders import keep
from turnwise.envs.household.state import (
    BURNT,
    GONE,
    HELD,
    NOTHING,
    House,
    HouseGoal,
    HouseState,
    begin,
    fitting,
    reached,
    solved,
)

_LONGEST = 2000


def gold(state: HouseState) -> HouseAct:
    """The next act of a solution; ``look`` where there is none any more."""
    held = state.holding
    if state.house.orders:
        return _carry_out(state)
    goals = [goal for index, goal in enumerate(state.house.goals) if not reached(state, index)]
    if held != NOTHING and not state.flags[held] & BURNT:
        for goal in goals:
            if state.house.types[held] == goal.thing:
                return _serve(state, goal, held)
    for goal in goals:
        wanted = _candidates(state, goal)
        if wanted:
            return _fetch(state, min(wanted, key=lambda n: _far(state, state.at[n])))
    return HouseAct("look")


def distance(state: HouseState) -> float:
    """Count the turns that ``gold`` needs from here, if nothing slips; infinite where it does not get there."""
    turns = 0
    while not solved(state):
        act = gold(state)
        if act.verb == "look" or turns > _LONGEST:
            return float("inf")
        state, turns = keep(do(state, act).state).state, turns + 1
    return turns


@functools.lru_cache(maxsize=2048)
def start_distance(house: House) -> float:
    """The distance of the episode's first state."""
    return distance(begin(house))


def _carry_out(state: HouseState) -> HouseAct:
    """The next act for the order of now."""
    house, held = state.house, state.holding
    if state.served >= len(house.orders):
        return HouseAct("look")
    order = house.orders[state.served]
    if state.at[order.object] == GONE:
        return HouseAct("look")
    if held != order.object:
        return _fetch(state, order.object)
    if state.place != order.place:
        return _go(state, [order.place])
    return (
        HouseAct("put", held, order.place)
        if state.is_open(order.place)
        else HouseAct("open", place=order.place)
    )


def _candidates(state: HouseState, goal: HouseGoal) -> list[int]:
    """The objects that can still serve a goal and do not yet."""
    fit = fitting(state, goal) if goal.place else []
    return [
        number
        for number in state.house.those(goal.thing)
        if state.at[number] < GONE and number not in fit and not state.flags[number] & BURNT
    ]


def _serve(state: HouseState, goal: HouseGoal, held: int) -> HouseAct:
    """With the wanted object in the hands: prepare it, then bring it where it belongs."""
    house, here = state.house, state.place
    if goal.kind == "light":
        places = house.doing("use")
        return HouseAct("use", place=here) if here in places else _go(state, places)
    if state.flags[held] & goal.flag != goal.flag:
        places = house.doing(goal.kind)
        return HouseAct(goal.kind, held, here) if here in places else _go(state, places)
    places = house.those(goal.place)
    if here not in places:
        return _go(state, places)
    return HouseAct("put", held, here) if state.is_open(here) else HouseAct("open", place=here)


def _fetch(state: HouseState, wanted: int) -> HouseAct:
    """Towards an object that is not in the hands; what is in them is put down first."""
    if state.holding != NOTHING:
        return _put_down(state)
    place = state.at[wanted]
    if state.place != place:
        return _go(state, [place])
    return HouseAct("take", wanted, place) if state.is_open(place) else HouseAct("open", place=place)


def _put_down(state: HouseState) -> HouseAct:
    house, here = state.house, state.place
    room = house.room_of[here]
    if here < house.receptacles and house.props[here].does != "trash":
        return HouseAct("put", state.holding, here) if state.is_open(here) else HouseAct("open", place=here)
    free = [place for place in house.in_room[room] if house.props[place].does != "trash"]
    return _go(state, sorted(free, key=lambda place: not state.is_open(place))[:1])


def _go(state: HouseState, places: Sequence[int]) -> HouseAct:
    """One step towards the nearest of some receptacles."""
    house, here = state.house, state.house.room_of[state.place]
    steps, room_of = house.steps[here], house.room_of
    place = places[0] if len(places) == 1 else min(places, key=lambda p: steps[room_of[p]])
    room = house.room_of[place]
    return HouseAct("go", place=place if room == here else house.receptacles + house.towards(here, room))


def _far(state: HouseState, place: int) -> int:
    if place == HELD:
        return 0
    house = state.house
    return house.steps[house.room_of[state.place]][house.room_of[place]] * 2 + (place != state.place)


def demonstrate(state: HouseState, rng: Random) -> HouseAct:
    """An imperfect scripted policy: searches one receptacle after the other, sometimes at random, takes the wrong thing,
    forgets to prepare it.

    It acts on what can be seen where it stands, so that what it shows can be imitated.
    """
    if state.house.orders:  # it knows how, and is careless
        return gold(state) if rng.random() < 0.9 else rng.choice(possible(state))
    house, held = state.house, state.holding
    todo = [goal for index, goal in enumerate(house.goals) if not reached(state, index)]
    options = possible(state)
    if held != NOTHING:
        goal = next((goal for goal in todo if goal.thing == house.types[held]), None)
        if goal is None:
            return next((act for act in options if act.verb == "put"), None) or _stroll(state, options, rng)
        if goal.flag and rng.random() < 0.3:
            goal = goal._replace(kind="place")  # forgotten
        return _serve(state, goal, held)
    if not state.is_open(state.place):
        return HouseAct("open", place=state.place)
    wanted = {goal.thing for goal in todo}
    takes = [act for act in options if act.verb == "take"]
    right = [act for act in takes if house.types[act.object] in wanted]
    if takes and rng.random() < (0.9 if right else 0.1):
        return rng.choice(right if right and rng.random() < 0.8 else takes)
    if house.known and rng.random() < 0.4:
        return gold(state)
    return _stroll(state, options, rng)


def _stroll(state: HouseState, options: Sequence[HouseAct], rng: Random) -> HouseAct:
    """On to the next receptacle of the room, after the last one through a door; one time in five anywhere."""
    ways = [act for act in options if act.verb == "go"]
    if rng.random() < 0.2:
        return rng.choice(ways)
    doors = [act for act in ways if act.place >= state.house.receptacles]
    inside = [act for act in ways if act.place < state.house.receptacles]
    onward = [act for act in inside if act.place > state.place or state.place >= state.house.receptacles]
    return (onward or doors or inside)[0]
