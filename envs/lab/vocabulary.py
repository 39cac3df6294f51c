"""Kinds of things, and rooms. Lower-case single words; no thing is called like a room or a substance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Device(NamedTuple):
    """The temperature a device brings things in it to, and the percent of the difference that a turn closes."""

    target: int
    share: int


class ThingKind(NamedTuple):
    """Properties that all things of a kind share."""

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
    instrument: bool = False  # what it shows of other things is the task's secret
    order: str = ""  # of animals: mammal, bird, …
    eats: str = ""  # plants or animals; empty for both


_SHELF, _CUPBOARD = ThingKind(fixed=True, holds=True), ThingKind(fixed=True, holds=True, openable=True)
_VESSEL, _BOTTLE = ThingKind(vessel=True), ThingKind(vessel=True, source=True)


def _heater(target: int, share: int = 15, *, openable: bool = False) -> ThingKind:
    return ThingKind(fixed=True, holds=True, openable=openable, device=Device(target, share))


KINDS: Mapping[str, ThingKind] = {
    **dict.fromkeys(("counter", "desk", "bench", "shelf", "table"), _SHELF),
    **dict.fromkeys(("cupboard", "cabinet", "chest", "drawer", "closet", "trunk"), _CUPBOARD),
    **dict.fromkeys(("crate", "basket"), _SHELF),  # answers are given with them
    "plane": _SHELF,  # a slope
    "stove": _heater(400),
    "oven": _heater(260, openable=True),
    "burner": _heater(700),
    "furnace": _heater(1600, openable=True),
    "fridge": _heater(3, 40, openable=True),
    "freezer": _heater(-60, 45, openable=True),
    "cryostat": _heater(-80, 50),
    **dict.fromkeys(("beaker", "cup", "crucible", "pan", "flask"), _VESSEL),
    **dict.fromkeys(("bottle", "jar", "bag"), _BOTTLE),
    "thermos": ThingKind(vessel=True, insulated=True),
    "pot": ThingKind(fixed=True, vessel=True, holds=True, pot=True),
    "thermometer": ThingKind(),
    **dict.fromkeys(("scale", "magnet", "litmus", "meter", "rasp", "tile"), ThingKind(instrument=True)),
    **dict.fromkeys(("cube", "stone", "cart"), ThingKind()),
    **dict.fromkeys(("pendulum", "track"), ThingKind(fixed=True)),
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
        name: ThingKind(living="animal", span=years, order=order, eats=eats)
        for name, years, order, eats in (
            ("mouse", 2, "mammal", ""), ("hamster", 3, "mammal", ""), ("rabbit", 9, "mammal", "plants"),
            ("hedgehog", 6, "mammal", "animals"), ("cat", 16, "mammal", "animals"), ("goat", 17, "mammal", "plants"),
            ("frog", 12, "amphibian", "animals"), ("toad", 11, "amphibian", "animals"), ("newt", 14, "amphibian", "animals"),
            ("parrot", 60, "bird", "plants"), ("owl", 20, "bird", "animals"), ("finch", 5.5, "bird", "plants"),
            ("tortoise", 120, "reptile", "plants"), ("viper", 15, "reptile", "animals"), ("gecko", 10, "reptile", "animals"),
            ("butterfly", 0.1, "insect", "plants"), ("locust", 0.3, "insect", "plants"), ("mantis", 0.8, "insect", "animals"),
            ("snail", 5, "", "plants"),
        )
    },
    **{  # young ones; no age is asked of them
        name: ThingKind(living="animal")
        for name in ("egg", "caterpillar", "pupa", "spawn", "tadpole", "froglet", "larva", "mosquito", "chick", "hen")
    },
    **{name: ThingKind(living="plant") for name in ["fern", "moss", "ivy", "cactus", "clover", "orchid", "thistle", "lily"]},
    **dict.fromkeys(["hammer", "book", "brick", "mirror", "ladder", "bucket", "rope", "scarf", "ball", "globe"], ThingKind()),
    **dict.fromkeys(["clock", "ruler"], ThingKind(instrument=True)),
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
ANIMALS = tuple(name for name, kind in KINDS.items() if kind.living == "animal" and kind.span)
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
    **dict.fromkeys(("test", "try", "weigh"), "test"),
    **dict.fromkeys(("connect", "attach", "wire"), "connect"),
    **dict.fromkeys(("disconnect", "detach"), "disconnect"),
    **dict.fromkeys(("cross", "pollinate", "breed"), "cross"),
    **dict.fromkeys(("focus", "choose"), "focus"),
    **dict.fromkeys(("wait", "rest"), "wait"),
    **dict.fromkeys(("look", "inventory", "inv"), "look"),
    **dict.fromkeys(("examine", "read", "inspect", "check", "search"), "examine"),
}
ASIDE = frozenset(("check", "search"))
"""Verbs that are as often said of what one is about to do: beside a command they are no second one."""
