"""Names of what there is in a house. Lower-case single words; no object is called like a receptacle or a
room."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A kind of receptacle."""

    openable: bool = False
    does: str = ""  # clean, heat, cool, use (a lamp), trash


PLACES: dict[str, Place] = {
    "cabinet": Place(openable=True),
    "drawer": Place(openable=True),
    "closet": Place(openable=True),
    "safe": Place(openable=True),
    "fridge": Place(openable=True, does="cool"),
    "microwave": Place(openable=True, does="heat"),
    "sink": Place(does="clean"),
    "bin": Place(does="trash"),
    "desk": Place(does="use"),
    "nightstand": Place(does="use"),
    "counter": Place(),
    "stove": Place(),
    "shelf": Place(),
    "table": Place(),
    "rack": Place(),
    "toilet": Place(),
    "bathtub": Place(),
    "bed": Place(),
    "dresser": Place(),
    "sofa": Place(),
    "armchair": Place(),
    "stool": Place(),
}

HOLLOW = frozenset(name for name, place in PLACES.items() if place.openable) | {"sink", "bin", "bathtub"}
"""Receptacles that things are put in; they are put on all others."""

ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # room → (always there, may be there)
    "kitchen": (
        ("fridge", "microwave", "sink"),
        ("counter", "cabinet", "drawer", "table", "shelf", "stove", "bin"),
    ),
    "bathroom": (("sink",), ("toilet", "bathtub", "cabinet", "rack", "shelf", "bin", "stool")),
    "bedroom": (("nightstand",), ("bed", "dresser", "drawer", "shelf", "closet", "bin", "armchair")),
    "lounge": (("desk",), ("sofa", "table", "shelf", "drawer", "armchair", "safe", "bin", "cabinet")),
}

NEEDS: dict[str, tuple[str, ...]] = {  # kind of goal → rooms in which it can be done
    "place": tuple(ROOMS),
    "two": tuple(ROOMS),
    "clean": ("kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
    "light": ("bedroom", "lounge"),
}


class HouseThing(NamedTuple):
    """A kind of object: where it is found, and what can be done to it."""

    rooms: tuple[str, ...]
    can: frozenset[str]


def _things(rooms: str, can: str, names: str) -> dict[str, HouseThing]:
    return {name: HouseThing(tuple(rooms.split()), frozenset(can.split())) for name in names.split()}


THINGS: dict[str, HouseThing] = {
    **_things("kitchen", "clean heat cool", "mug apple plate tomato cup potato egg bowl"),
    **_things("kitchen", "clean", "fork knife spoon ladle spatula"),
    **_things("kitchen", "clean cool", "pan pot lettuce"),
    **_things("kitchen", "heat cool", "bread soup"),
    **_things("kitchen", "cool", "bottle juice"),
    **_things("bathroom", "clean", "soap cloth towel comb sponge"),
    **_things("bathroom", "", "candle spray tissue brush razor"),
    **_things("bedroom lounge", "", "book pen watch phone pencil card key laptop pillow"),
    **_things("lounge", "", "remote vase statue newspaper"),
    **_things("bedroom", "", "clock ball disk wallet"),
}

SMALL = 24
"""Number of things in the small vocabulary: every other one, so that each room and each ability is in it."""


def things(vocabulary: str) -> tuple[str, ...]:
    """The kinds of objects of a vocabulary, ``small`` or ``full``.

    >>> len(things("small")), len(things("full"))
    (24, 47)
    """
    names = tuple(THINGS)
    return names if vocabulary == "full" else names[::2][:SMALL]


VERBS: dict[str, str] = {  # what may be said → the verb
    **dict.fromkeys(("go", "goto", "walk", "head", "return", "proceed", "enter", "approach", "visit"), "go"),
    **dict.fromkeys(("open",), "open"),
    **dict.fromkeys(("close", "shut"), "close"),
    **dict.fromkeys(("take", "get", "grab", "pick", "pickup", "fetch", "collect"), "take"),
    **dict.fromkeys(("put", "place", "insert", "drop", "leave", "set", "lay", "store"), "put"),
    **dict.fromkeys(("clean", "wash", "rinse"), "clean"),
    **dict.fromkeys(("heat", "warm", "cook"), "heat"),
    **dict.fromkeys(("cool", "chill"), "cool"),
    **dict.fromkeys(("use", "turn", "switch", "toggle", "light"), "use"),
    **dict.fromkeys(("look", "wait"), "look"),
    **dict.fromkeys(("inventory", "inv"), "inventory"),
    **dict.fromkeys(("examine", "inspect", "check", "search"), "examine"),
    "move": "move",
}
ASIDE = frozenset(("check", "search"))
"""Verbs that are as often said of what one is about to do: beside a command they are no second one."""
SWITCHED = frozenset(("turn", "switch", "light"))
"""Verbs that say how a lamp shall be afterwards; to use it changes it either way."""
