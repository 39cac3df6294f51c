"""Houses and their states: what is where, and when a task is done.

A state is a few integers and byte strings beside a reference to its :class:`House`, so copying one costs
nothing. Places are numbered: first the receptacles, then the middle of each room.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.household.words import PLACES, THINGS, Place, Thing
from turnwise.errors import EnvError
from turnwise.tasks.core import Task

NOTHING = -1
HELD, GONE = 255, 254  # where an object can be beside in a receptacle
CLEAN, HOT, COOL, BURNT = 1, 2, 4, 8
FLAG = {"clean": CLEAN, "heat": HOT, "cool": COOL}


class Goal(NamedTuple):
    """One thing to be achieved; ``place`` is "" where an object is to be looked at under a lamp."""

    kind: str  # place, two, clean, heat, cool, light
    thing: str
    place: str = ""

    @property
    def flag(self) -> int:
        return FLAG.get(self.kind, 0)


class House:
    """What stays the same during an episode. Names are a word and a number: ``shelf 2``."""

    def __init__(self, task: Task) -> None:
        options = task.options
        try:
            rooms = [kind for kind, _ in options["rooms"]]
            kinds = [kind for _, inside in options["rooms"] for kind in inside]
            self.room_of = [room for room, (_, inside) in enumerate(options["rooms"]) for _ in inside]
            self.doors: Sequence[tuple[int, int]] = [(a, b) for a, b in options["doors"]]
            self.goals = tuple(Goal(*goal) for goal in options["goals"])
            found: list[tuple[str, int]] = [(kind, at) for kind, at in options["objects"]]
            self.full, self.known = options["text"] == "full", bool(options["known"])
            self.irreversible, self.slip = bool(options["irreversible"]), float(options["slip"])
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"This is no household task: {error!r}.", "Take tasks from a suite.") from None
        self.task = task
        self.receptacles = len(kinds)
        self.kinds: Sequence[str] = (*kinds, *rooms)
        self.types: Sequence[str] = [kind for kind, _ in found]
        self.numbers: dict[str, tuple[str, list[int]]] = {}  # word → (what it names, those called 1, 2, …)
        self.places = self._call("place", self.kinds)
        self.rooms = self.places[len(kinds) :]
        self.objects = self._call("object", self.types)
        self.room_of += range(len(rooms))
        self.props: Sequence[Place] = [PLACES.get(kind, Place()) for kind in self.kinds]
        self.things: Sequence[Thing] = [THINGS[kind] for kind in self.types]
        self.start = bytes(at for _, at in found)
        self.openable = [place.openable for place in self.props]
        self.in_room = [
            [place for place in range(self.receptacles) if self.room_of[place] == room]
            for room in range(len(self.rooms))
        ]
        self.next_to: Sequence[Sequence[int]] = [
            sorted({b for a, b in self.doors if a == room} | {a for a, b in self.doors if b == room})
            for room in range(len(self.rooms))
        ]
        self.lamps = {
            place: f"lamp {number}"
            for number, place in enumerate((p for p in range(len(kinds)) if self.props[p].does == "use"), 1)
        }
        if self.lamps:
            self.numbers["lamp"] = ("lamp", list(self.lamps))

    def __repr__(self) -> str:
        return f"House({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, House) and other.task.id == self.task.id

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[type[House], tuple[Task]]:
        return House, (self.task,)

    def of_kind(self, kind: str) -> list[int]:
        """The receptacles of a kind."""
        return [place for place in range(self.receptacles) if self.kinds[place] == kind]

    def doing(self, does: str) -> list[int]:
        """The receptacles that clean, heat, cool, trash, or have a lamp (``use``)."""
        return [place for place in range(self.receptacles) if self.props[place].does == does]

    @functools.cached_property
    def steps(self) -> Sequence[Sequence[int]]:
        """``steps[a][b]``: how many doors are between two rooms."""
        table: list[list[int]] = []
        for start in range(len(self.rooms)):
            far, edge = {start: 0}, [start]
            for room in edge:
                for other in self.next_to[room]:
                    if other not in far:
                        far[other] = far[room] + 1
                        edge.append(other)
            table.append([far[room] for room in range(len(self.rooms))])
        return table

    def towards(self, here: int, room: int) -> int:
        """The room to enter next on the way from one to another."""
        return min(self.next_to[here], key=lambda other: self.steps[other][room])

    def _call(self, what: str, words: Sequence[str]) -> list[str]:
        """Names such as ``shelf 2``, kept in ``numbers`` too."""
        names: list[str] = []
        for number, word in enumerate(words):
            known = self.numbers.setdefault(word, (what, []))[1]
            known.append(number)
            names.append(f"{word} {len(known)}")
        return names


class HouseState(NamedTuple):
    """A moment. ``at`` and ``flags`` have one byte per object."""

    house: House
    place: int
    at: bytes
    flags: bytes
    opened: int = 0  # a bit per receptacle
    lit: int = 0  # a bit per lamp's receptacle
    seen: int = 0  # a bit per goal of the kind "light" that was reached once
    holding: int = NOTHING

    def is_open(self, place: int) -> bool:
        return not self.house.openable[place] or bool(self.opened >> place & 1)

    def inside(self, place: int) -> list[int]:
        """The objects in a receptacle."""
        return [number for number, at in enumerate(self.at) if at == place]

    @property
    def reach(self) -> list[int]:
        """The objects that can be seen here and taken."""
        if self.place >= self.house.receptacles or not self.is_open(self.place):
            return []
        return self.inside(self.place)


def begin(house: House) -> HouseState:
    """The first moment: in the middle of the first room."""
    return HouseState(house, house.receptacles, house.start, bytes(len(house.start)))


def reached(state: HouseState, index: int) -> bool:
    """Whether a goal is satisfied now (or was, where it is to look at something)."""
    goal = state.house.goals[index]
    if goal.kind == "light":
        return bool(state.seen >> index & 1)
    wanted = 2 if goal.kind == "two" else 1
    return len(fitting(state, goal)) >= wanted


def fitting(state: HouseState, goal: Goal) -> list[int]:
    """The objects that already are as and where a goal wants them."""
    house, flag = state.house, goal.flag
    return [
        number
        for number in house_objects(house, goal.thing)
        if state.at[number] < GONE
        and house.kinds[state.at[number]] == goal.place
        and state.flags[number] & flag == flag
        and not state.flags[number] & BURNT
    ]


def house_objects(house: House, thing: str) -> Sequence[int]:
    """The objects of a kind."""
    found = house.numbers.get(thing)
    return found[1] if found else ()


def look_goals(state: HouseState) -> HouseState:
    """The state with the goals noted that are reached by holding something under a light."""
    held, place = state.holding, state.place
    if held == NOTHING or not state.lit >> place & 1:
        return state
    seen = state.seen
    for index, goal in enumerate(state.house.goals):
        if goal.kind == "light" and goal.thing == state.house.types[held]:
            seen |= 1 << index
    return state._replace(seen=seen) if seen != state.seen else state


def solved(state: HouseState) -> bool:
    """Whether every goal is reached."""
    return all(reached(state, index) for index in range(len(state.house.goals)))
