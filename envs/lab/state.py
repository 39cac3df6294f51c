"""Laboratories and their states: what is where, what is in what, how warm it is.

Things are numbered, and so are rooms. Where something is, is a number too: of a room, or the number of rooms
plus that of the thing that it is in.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.envs.lab.matter import GAS, LIQUID, NAMES, ROOM_TEMPERATURE, SOLID, SUBSTANCES, mask
from turnwise.envs.lab.vocabulary import KINDS, OUTDOORS, ThingKind
from turnwise.errors import EnvError
from turnwise.tasks.core import Task

NOTHING = -1
HELD, NOWHERE = 255, 254
SEEDLING, GROWN, FLOWER, FRUIT = 1, 2, 3, 4
STAGES = ("seed", "seedling", "plant", "flower", "fruit")
AGES = (0, 3, 6, 9, 12)  # at which each stage begins, in turns


class LabGoal(NamedTuple):
    """A sub-goal; ``a``, ``b`` and ``c`` are things, a substance (as bits), a phase, a stage, degrees or a reading."""

    kind: str
    a: int = NOTHING
    b: int = NOTHING
    c: int = NOTHING


class LabReading(NamedTuple):
    """Reading of a thing on a kind of instrument."""

    instrument: str
    thing: int
    says: str


class Laboratory:
    """Constant part of an episode."""

    def __init__(self, task: Task) -> None:
        options = task.options
        try:
            self.rooms: Sequence[str] = options["rooms"]
            self.kinds: Sequence[str] = [kind for kind, *_ in options["things"]]
            self.props: Sequence[ThingKind] = [KINDS[kind] for kind in self.kinds]
            self.at = bytes([at for _, at, *_ in options["things"]])
            self.content = tuple([mask(*inside) for _, _, inside, _, _ in options["things"]])
            self.temperature = tuple([warm for _, _, _, warm, _ in options["things"]])
            self.age = bytes([age for *_, age in options["things"]])
            self.goals = tuple([LabGoal(*goal) for goal in options["goals"]])
            self.melts: Mapping[str, int] = dict(options["melts"])
            self.seconds: Mapping[int, int] = {int(plane): n for plane, n in options["seconds"]}
            self.traits: Mapping[int, str] = {int(thing): trait for thing, trait in options["traits"]}
            self.readings = tuple([LabReading(*reading) for reading in options["readings"]])
            self.notes: str = options["notes"]
            self.orders: Sequence[str] = options.get("orders", ())
            self.broken = frozenset(options["broken"])
            self.full, self.known = options["text"] == "full", bool(options["known"])
            self.irreversible, self.slip = bool(options["irreversible"]), float(options["slip"])
            doors: list[tuple[int, int]] = options["doors"]
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(
                f"This is no task of the laboratory: {error!r}.", "Take tasks from a suite."
            ) from None
        self.task, self.key = task, task.id.encode()
        self.numbers: dict[str, list[int]] = {}  # kind → the things called 1, 2, …
        self.names: list[str] = []
        for number, kind in enumerate(self.kinds):
            self.numbers.setdefault(kind, []).append(number)
            self.names.append(f"{kind} {len(self.numbers[kind])}")
        self.next_to: list[list[int]] = [[] for _ in self.rooms]
        for a, b in doors:
            self.next_to[a].append(b)
            self.next_to[b].append(a)
        self.vessels = [
            n for n, kind in enumerate(self.props) if kind.vessel and not kind.source and not kind.pot
        ]
        self.plants = [n for n, kind in enumerate(self.props) if kind.seed]
        self.hives = self.numbers.get("hive", [])
        self.outdoors = self.rooms.index(OUTDOORS) if OUTDOORS in self.rooms else NOTHING

    def __repr__(self) -> str:
        return f"Lab({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Laboratory) and other.task.id == self.task.id

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[type[Laboratory], tuple[Task]]:
        return Laboratory, (self.task,)

    @functools.cached_property
    def ways(self) -> Sequence[Sequence[tuple[int, int]]]:
        """``ways[a][b]``: the room to enter next on the way from a to b, and how many doors it takes."""
        table = [[(room, 0)] * len(self.rooms) for room in range(len(self.rooms))]
        for goal in range(len(self.rooms)):
            came, edge = {goal: (goal, 0)}, [goal]
            for now in edge:
                for other in self.next_to[now]:
                    if other not in came:
                        came[other] = (now, came[now][1] + 1)
                        edge.append(other)
            for here, way in came.items():
                table[here][goal] = way
        return table

    def points(self, content: int) -> tuple[int, int, int]:
        """Return the degrees at which the first substance of a mixture melts, boils and burns."""
        name = NAMES[(content & -content).bit_length() - 1]
        melts, boils, burns = SUBSTANCES[name]
        return self.melts.get(name, melts), boils, burns


class LabState(NamedTuple):
    """A moment. ``at`` and ``age`` have a byte per thing, ``content`` and ``temperature`` a number."""

    lab: Laboratory
    room: int
    at: bytes
    content: tuple[int, ...]
    temperature: tuple[int, ...]
    age: bytes
    opened: int = 0  # a bit per thing
    running: int = 0  # a bit per device
    wires: tuple[tuple[int, int], ...] = ()  # what is connected, sorted
    noted: int = 0  # a bit per thing that was measured, tested or tried as its task asks
    used: int = 0  # a bit per reading that was taken
    focus: int = NOTHING
    done: int = 0  # how many sub-goals are reached

    def room_of(self, thing: int) -> int:
        """The room in which a thing is; NOTHING if it does not exist yet."""
        rooms, at = len(self.lab.rooms), self.at[thing]
        while at >= rooms:
            if at == HELD:
                return self.room
            if at == NOWHERE:
                return NOTHING
            at = self.at[at - rooms]
        return at

    def inside(self, thing: int) -> list[int]:
        """List the things that are in or on a thing."""
        return self.things_at(len(self.lab.rooms) + thing)

    def things_at(self, place: int) -> list[int]:
        """List the things whose place this byte is; it is asked for each thing that is seen, so it looks at no other."""
        found, last = list[int](), self.at.find(place)
        while last >= 0:
            found.append(last)
            last = self.at.find(place, last + 1)
        return found

    def is_open(self, thing: int) -> bool:
        return not self.lab.props[thing].openable or bool(self.opened >> thing & 1)

    def closed_around(self, thing: int) -> int:
        """The outermost closed thing that a thing is in; NOTHING if it can be reached in its room."""
        rooms, at, found = len(self.lab.rooms), self.at[thing], NOTHING
        while rooms <= at < NOWHERE:
            if not self.is_open(at - rooms):
                found = at - rooms
            at = self.at[at - rooms]
        return found

    def can_reach(self, thing: int) -> bool:
        return self.room_of(thing) == self.room and self.closed_around(thing) == NOTHING

    def reach(self) -> list[int]:
        """Everything that can be seen and touched here, what is in the hands included."""
        rooms, here = len(self.lab.rooms), self.room
        found: list[int] = []
        open_places = {here, HELD}
        late: list[int] = []
        for number, at in enumerate(self.at):
            if at in open_places:
                found.append(number)
                if self.is_open(number):
                    open_places.add(rooms + number)
            elif rooms <= at < NOWHERE:
                late.append(number)
        while True:  # what is in things with a higher number
            more = [number for number in late if self.at[number] in open_places and number not in found]
            if not more:
                return sorted(found)
            found += more
            open_places |= {rooms + number for number in more if self.is_open(number)}

    def held(self) -> list[int]:
        return self.things_at(HELD)

    def phase(self, vessel: int) -> int:
        """Of what is in a vessel."""
        melts, boils, _ = self.lab.points(self.content[vessel])
        warm = self.temperature[vessel]
        return SOLID if warm < melts else LIQUID if warm < boils else GAS

    def device_of(self, thing: int) -> int:
        """The device in which a thing lies; NOTHING if it lies in none."""
        place = self.at[thing] - len(self.lab.rooms)
        return place if 0 <= place < len(self.at) and self.lab.props[place].device else NOTHING

    def pot_of(self, plant: int) -> int:
        """The pot in which a plant stands; NOTHING if it stands in none."""
        place = self.at[plant] - len(self.lab.rooms)
        return place if 0 <= place < len(self.at) and self.lab.props[place].pot else NOTHING

    def stage(self, plant: int) -> int:
        """Return the stage of growth that a plant has reached."""
        return sum(self.age[plant] >= age for age in AGES[1:])


def begin(lab: Laboratory) -> LabState:
    """The first moment, in the first room; what cools is already running."""
    running = sum(
        1 << n for n, kind in enumerate(lab.props) if kind.device and kind.device.target < ROOM_TEMPERATURE
    )
    return LabState(lab, 0, lab.at, lab.content, lab.temperature, lab.age, running=running)
