"""Kinds of things, and rooms. Lower-case single words; no thing is called like a room or a substance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Device(NamedTuple):
    """What a device brings things in it to, and how many degrees a turn."""

    target: int
    rate: int


class ThingKind(NamedTuple):
    """What is true of all things of a kind."""

    fixed: bool = False  # stays where it is
    holds: bool = False  # things can be put in or on it
    openable: bool = False
    vessel: bool = False  # holds substances
    source: bool = False  # substances are poured from it, without end
    insulated: bool = False  # its temperature stays
    device: Device | None = None
    living: str = ""  # animal or plant
    span: float = 0.0  # years that it lives
    part: str = ""  # of circuits: wire, lamp, battery, solar, piece
    conducts: bool = False
    seed: bool = False
    pot: bool = False


_SHELF, _CUPBOARD = ThingKind(fixed=True, holds=True), ThingKind(fixed=True, holds=True, openable=True)
_VESSEL, _BOTTLE = ThingKind(vessel=True), ThingKind(vessel=True, source=True)


def _heater(target: int, rate: int, *, openable: bool = False) -> ThingKind:
    return ThingKind(fixed=True, holds=True, openable=openable, device=Device(target, rate))


KINDS: Mapping[str, ThingKind] = {
    **dict.fromkeys(("counter", "desk", "bench", "shelf", "table"), _SHELF),
    **dict.fromkeys(("cupboard", "cabinet", "chest", "drawer", "closet", "trunk"), _CUPBOARD),
    **dict.fromkeys(("crate", "basket"), _SHELF),  # answers are given with them
    "plane": _SHELF,  # a slope
    "stove": _heater(400, 40),
    "oven": _heater(260, 30, openable=True),
    "burner": _heater(700, 60),
    "furnace": _heater(1600, 200, openable=True),
    "fridge": _heater(3, -6, openable=True),
    "freezer": _heater(-60, -15, openable=True),
    "cryostat": _heater(-80, -20),
    **dict.fromkeys(("beaker", "cup", "crucible", "pan", "flask"), _VESSEL),
    **dict.fromkeys(("bottle", "jar", "bag"), _BOTTLE),
    "thermos": ThingKind(vessel=True, insulated=True),
    "pot": ThingKind(fixed=True, vessel=True, holds=True, pot=True),
    "thermometer": ThingKind(),
    "brush": ThingKind(),
    "block": ThingKind(),
    "note": ThingKind(),
    "hive": ThingKind(fixed=True, openable=True),
    **{name: ThingKind(seed=True) for name in ["bean", "pea", "acorn", "kernel", "tuber", "pip", "corm", "grain"]},
    "sapling": ThingKind(seed=True, living="plant"),  # what two plants have brought forth
    "wire": ThingKind(part="wire", conducts=True),
    "lamp": ThingKind(part="lamp", conducts=True),
    "battery": ThingKind(part="battery", conducts=True),
    "panel": ThingKind(part="solar", conducts=True),  # sunlight → current, out of doors
    **{name: ThingKind(part="piece", conducts=True) for name in ["nail", "spoon", "coin", "foil", "needle", "key", "chain", "bolt"]},
    **{name: ThingKind(part="piece") for name in ["cork", "button", "eraser", "pebble", "feather", "shell", "candle", "straw"]},
    **{
        name: ThingKind(living="animal", span=years)
        for name, years in (
            ("mouse", 2), ("hamster", 3), ("rabbit", 9), ("hedgehog", 6), ("frog", 12), ("cat", 16),
            ("parrot", 60), ("tortoise", 120), ("butterfly", 0.1), ("snail", 5), ("toad", 11), ("newt", 14),
        )
    },
    **{name: ThingKind(living="plant") for name in ["fern", "moss", "ivy", "cactus", "clover", "orchid", "thistle", "lily"]},
    **dict.fromkeys(["hammer", "book", "brick", "mirror", "ladder", "bucket", "rope", "scarf", "clock", "ball", "globe", "ruler"], ThingKind()),
}  # fmt: skip

ROOMS: Mapping[str, tuple[str, ...]] = {  # room → what always stands there
    "hallway": ("table", "closet"),
    "kitchen": ("stove", "oven", "fridge", "freezer", "counter", "cupboard"),
    "laboratory": ("burner", "cryostat", "desk", "cabinet"),
    "foundry": ("furnace", "bench", "chest"),
    "workshop": ("bench", "drawer"),
    "greenhouse": ("shelf", "trunk"),
    "garden": ("table",),
    "study": ("desk", "cabinet"),
}
OUTDOORS = "garden"
INDOORS = tuple(room for room in ROOMS if room != OUTDOORS)

CONDUCTORS = tuple(name for name, kind in KINDS.items() if kind.part == "piece" and kind.conducts)
INSULATORS = tuple(name for name, kind in KINDS.items() if kind.part == "piece" and not kind.conducts)
ANIMALS = tuple(name for name, kind in KINDS.items() if kind.living == "animal")
PLANTS = tuple(name for name, kind in KINDS.items() if kind.living == "plant" and not kind.seed)
LIFELESS = (
    "hammer",
    "book",
    "brick",
    "mirror",
    "ladder",
    "bucket",
    "rope",
    "scarf",
    "clock",
    "ball",
    "globe",
    "ruler",
)
SEEDS = tuple(name for name, kind in KINDS.items() if kind.seed and name != "sapling")
VESSELS = ("beaker", "cup", "crucible", "pan", "flask")
VERBS: dict[str, str] = {  # what may be said → the verb
    **dict.fromkeys(("go", "goto", "walk", "enter", "visit", "move"), "go"),
    "open": "open",
    "close": "close",
    "shut": "close",
    **dict.fromkeys(("take", "get", "grab", "pick", "fetch"), "take"),
    **dict.fromkeys(("put", "place", "insert", "set", "plant", "lay", "roll", "slide"), "put"),
    **dict.fromkeys(("drop", "leave"), "drop"),
    **dict.fromkeys(("pour", "water", "fill", "add"), "pour"),
    **dict.fromkeys(("mix", "stir", "combine"), "mix"),
    **dict.fromkeys(("empty", "discard"), "empty"),
    **dict.fromkeys(("activate", "start", "turn", "switch"), "activate"),
    **dict.fromkeys(("deactivate", "stop"), "deactivate"),
    **dict.fromkeys(("measure", "use"), "measure"),
    **dict.fromkeys(("connect", "attach", "wire"), "connect"),
    **dict.fromkeys(("disconnect", "detach"), "disconnect"),
    **dict.fromkeys(("cross", "pollinate", "breed"), "cross"),
    **dict.fromkeys(("focus", "choose"), "focus"),
    **dict.fromkeys(("wait", "rest"), "wait"),
    **dict.fromkeys(("look", "inventory", "inv"), "look"),
    **dict.fromkeys(("examine", "read", "inspect"), "examine"),
}
