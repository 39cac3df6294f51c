"""Houses and their states: what is where, and when a task is done.

A state is a few integers and byte strings beside a reference to its :class:`House`, so copying one costs
nothing. Places are numbered: first the receptacles, then the middle of each room.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.household.vocabulary import PLACES, THINGS, Place
from turnwise.envs.worlds.meta_reasoning import BLANK, MetaReasoning
from turnwise.errors import EnvError
from turnwise.tasks.core import Task

NOTHING = -1
HELD, GONE = 255, 254  # where an object can be beside in a receptacle
CLEAN, HOT, COOL, BURNT = 1, 2, 4, 8
FLAG = {"clean": CLEAN, "heat": HOT, "cool": COOL}
_ROOM = Place()  # what the middle of a room is like


class HouseGoal(NamedTuple):
    """One thing to be achieved; ``place`` is "" where an object is to be looked at under a lamp."""

    kind: str  # place, two, clean, heat, cool, light
    thing: str
    place: str = ""

    @property
    def flag(self) -> int:
        return FLAG.get(self.kind, 0)


class HouseOrder(NamedTuple):
    """An object to be brought to a receptacle, and where it lies before; ``back``: the order whose object it takes back, or -1."""

    object: int
    place: int
    origin: int
    back: int = -1


class House:
    """Constant part of an episode. Names are a word and a number: ``shelf 2``."""

    def __init__(self, task: Task) -> None:
        options = task.options
        try:
            doors: list[tuple[int, int]] = options["doors"]
            self.goals = tuple([HouseGoal(*goal) for goal in options["goals"]])
            self.orders = tuple([HouseOrder(*order) for order in options.get("orders", ())])
            self.hidden = bool(options.get("hidden"))
            types, start = zip(*options["objects"], strict=True)
            self.types: Sequence[str] = types
            self.start = bytes(start)
            self.full, self.known = options["text"] == "full", bool(options["known"])
            self.irreversible, self.slip = bool(options["irreversible"]), float(options["slip"])
            rooms: list[tuple[str, list[str]]] = options["rooms"]
            kinds: list[str] = []
            self.room_of: list[int] = []  # of each place
            self.in_room: list[range] = []  # its receptacles
            for room, (_, inside) in enumerate(rooms):
                self.in_room.append(range(len(kinds), len(kinds) + len(inside)))
                self.room_of += [room] * len(inside)
                kinds += inside
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"This is no household task: {error!r}.", "Take tasks from a suite.") from None
        self.task, self.key = task, task.id.encode()
        self.receptacles = len(kinds)
        self.kinds: Sequence[str] = [*kinds, *[kind for kind, _ in rooms]]
        self.places = _names(self.kinds)
        self.rooms = self.places[len(kinds) :]
        self.objects = _names(self.types)
        self.room_of += range(len(rooms))
        self.props: Sequence[Place] = [PLACES.get(kind, _ROOM) for kind in self.kinds]
        self.openable = [place.openable for place in self.props]
        self.next_to: list[list[int]] = [[] for _ in rooms]
        for a, b in doors:
            self.next_to[a].append(b)
            self.next_to[b].append(a)
        self.lamps = {
            place: called("lamp", number)
            for number, place in enumerate(
                [p for p, props in enumerate(self.props) if props.does == "use"], 1
            )
        }
        self.told: dict[int, str] = {}  # what is said of each room; filled by render.py
        self._those: dict[str, tuple[int, ...]] = {}  # filled as words are asked for

    def __repr__(self) -> str:
        return f"House({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, House) and other.task.id == self.task.id

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[type[House], tuple[Task]]:
        return House, (self.task,)

    def can(self, thing: int) -> frozenset[str]:
        """Return what can be done to an object: clean, heat, cool."""
        return THINGS[self.types[thing]].can

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

    def those(self, word: str) -> Sequence[int]:
        """The places or objects that a word names, in the order of their numbers."""
        found = self._those.get(word)
        if found is None:
            among = self.types if word in THINGS else self.kinds
            found = (
                tuple(self.lamps) if word == "lamp" else tuple([n for n, w in enumerate(among) if w == word])
            )
            self._those[word] = found
        return found


def _names(words: Sequence[str]) -> list[str]:
    """Names such as ``shelf 2``."""
    count: dict[str, int] = {}
    names: list[str] = []
    for word in words:
        number = count[word] = count.get(word, 0) + 1
        names.append(called(word, number))
    return names


@functools.cache
def called(word: str, number: int) -> str:
    """A name; one string for all houses."""
    return f"{word} {number}"


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
    mind: MetaReasoning = BLANK  # where meta-reasoning is paid for
    served: int = 0  # orders that are carried out

    def is_open(self, place: int) -> bool:
        return not self.house.openable[place] or bool(self.opened >> place & 1)

    def inside(self, place: int) -> list[int]:
        """The objects in a receptacle."""
        found: list[int] = []
        number = self.at.find(place)
        while number >= 0:
            found.append(number)
            number = self.at.find(place, number + 1)
        return found

    def can_reach(self, thing: int) -> bool:
        """Say whether an object can be seen here and taken."""
        place = self.place
        return self.at[thing] == place < self.house.receptacles and self.is_open(place)

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
    """Say whether a goal is satisfied now (or was, where it is to look at something)."""
    goal = state.house.goals[index]
    if goal.kind == "light":
        return bool(state.seen >> index & 1)
    wanted = 2 if goal.kind == "two" else 1
    return len(fitting(state, goal)) >= wanted


def fitting(state: HouseState, goal: HouseGoal) -> list[int]:
    """The objects that already are as and where a goal wants them."""
    house, at, flags = state.house, state.at, state.flags
    kinds, known = house.kinds, house.those(goal.thing)
    there = [number for number in known if at[number] < GONE and kinds[at[number]] == goal.place]
    if not there:
        return there
    flag = goal.flag
    return [number for number in there if flags[number] & (flag | BURNT) == flag]


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
    """Say whether every goal is reached and every order carried out."""
    return state.served == len(state.house.orders) and all(
        reached(state, index) for index in range(len(state.house.goals))
    )
