"""Lessons that are experiments: instruments that tell a thing's secrets, what heat does and undoes, kinds of animals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from random import Random

from turnwise.envs.lab.goals import CLASSES, EATERS, KINDS_OF_ANIMALS, belongs_to
from turnwise.envs.lab.matter import BOILING, FLUIDS, GAS, LIQUID, RESIDUES, SUBSTANCES, mask
from turnwise.envs.lab.plan import Lesson, LessonItem, LessonPlan, Make, Variation, answers
from turnwise.envs.lab.vocabulary import ANIMALS, CONDUCTORS, INDOORS, INSULATORS, KINDS, VESSELS

_IRON = ("nail", "needle", "key", "chain", "bolt")
_MINERALS = ("quartz", "calcite", "talc", "galena", "pyrite", "gypsum", "topaz", "garnet")
_LIVES: Mapping[str, tuple[str, ...]] = {
    "butterfly": ("egg", "caterpillar", "pupa", "butterfly"),
    "frog": ("spawn", "tadpole", "froglet", "frog"),
    "mosquito": ("egg", "larva", "pupa", "mosquito"),
    "hen": ("egg", "chick", "hen"),
}


def _thaw(rng: Random, variation: Variation) -> LessonPlan:
    (name,) = variation
    goals = [("focus", 0), ("placed", 0, 1), ("running", 0), ("phase", 0, LIQUID)]
    frozen = SUBSTANCES[name].melts - rng.randint(5, 40)
    ask = f"The {name} in {{0}} is frozen, and {{0}} lets no warmth in. Focus on it, then thaw it."
    return LessonPlan(
        [LessonItem("thermos", content=(name,), warm=frozen)], goals, ask, ("kitchen", "laboratory")
    )


def _condense(rng: Random, variation: Variation) -> LessonPlan:
    (name,) = variation
    goals = [("focus", 0), ("placed", 0, 1), ("running", 0), ("phase", 0, GAS), ("phase", 0, LIQUID)]
    items = [LessonItem(rng.choice(VESSELS), content=(name,))]
    ask = f"Focus on the {name}. Boil it, and then let what has become a gas be liquid again."
    return LessonPlan(items, goals, ask, ("kitchen", "laboratory", "foundry"))


def _degrees(warm: bool) -> Make:
    def make(rng: Random, variation: Variation) -> LessonPlan:
        name, degrees = variation
        low, high = (int(degrees), int(degrees) + 14) if warm else (int(degrees) - 11, int(degrees))
        items = [LessonItem(rng.choice(VESSELS), content=(name,)), LessonItem("thermometer")]
        goals = [
            ("focus", 0),
            *([("placed", 0, 1), ("running", 0)] if warm else []),
            ("warmed", 0, low, high),
        ]
        verb = "Heat" if warm else "Chill"
        ask = f"Focus on the {name}. {verb} it, and measure it while it has between {low} and {high} degrees."
        return LessonPlan(items, goals, ask, ("kitchen",))

    return make


def _evaporate(rng: Random, variation: Variation) -> LessonPlan:
    name, vessel = variation
    rest = RESIDUES[name]
    goals = [("focus", 0), ("placed", 0, 1), ("running", 0), ("dried", 0, mask(rest)), ("show", mask(rest))]
    other = rng.choice([one for one in RESIDUES if RESIDUES[one] != rest])
    items = [LessonItem(vessel, content=(name,)), LessonItem(rng.choice(VESSELS), content=(other,))]
    ask = f"Focus on the {name}. Boil the water out of it, and focus on what is left."
    return LessonPlan(items, goals, ask, ("kitchen", "laboratory"))


def _heaviest(rng: Random, variation: Variation) -> LessonPlan:
    which, one, other = variation
    grams = rng.sample(range(40, 900), 3)
    best = grams.index(max(grams) if which == "heaviest" else min(grams))
    items = [
        LessonItem("cube", one),
        LessonItem("cube", other),
        LessonItem("cube", one),
        LessonItem("scale", other),
    ]
    readings = [("scale", n, f"the scale shows {weight} grams .") for n, weight in enumerate(grams)]
    goals = [*(("used", n) for n in range(3)), ("focus", best)]
    ask = f"Weigh {{0}}, {{1}} and {{2}} with the scale, then focus on the {which}."
    return LessonPlan(items, goals, ask, (one, other), {"readings": readings})


def _yes_or_no(instrument: str, says: tuple[str, str], asked: str, told: tuple[str, str]) -> Make:
    """A thing of which an instrument says one of two things; the answer is given by a focus."""

    def make(rng: Random, variation: Variation) -> LessonPlan:
        kind, room = variation
        yes = kind in _IRON if instrument == "magnet" else rng.random() < 0.5
        content = ("compound",) if KINDS[kind].vessel else ()
        items = [LessonItem(kind, room, content), LessonItem(instrument)]
        answer = answers(items, *told)
        goals = [("used", 0), ("focus", 2 if yes else 3)]
        extra = {"readings": [(instrument, 0, says[not yes])]}
        return LessonPlan(items, goals, f"{asked} {answer}", (room,), extra)

    return make


def _quotient(
    rng: Random,
    border: int,
    high: bool,
    one: tuple[str, int, str],
    two: tuple[str, int, str],
    by: Sequence[tuple[int, int]],
) -> list[tuple[str, int, str]]:
    """Readings of two instruments: what the second says (and what one divides by), and a first value that is above the
    border times it, or below. The sentences have a place for the number."""
    shown, divisor = rng.choice(by)
    first = round(border * divisor * (rng.uniform(1.15, 1.8) if high else rng.uniform(0.4, 0.85)))
    return [(one[0], one[1], one[2].format(first)), (two[0], two[1], two[2].format(shown))]


def _density(rng: Random, variation: Variation) -> LessonPlan:
    (border,) = variation
    high = rng.random() < 0.5
    items = [LessonItem("cube"), LessonItem("scale"), LessonItem("ruler")]
    told = answers(items, f"it has more than {border} grams per cubic centimetre", "it has less")
    weight, side = (
        ("scale", 0, "the scale shows {} grams ."),
        ("ruler", 0, "each side is {} centimetres long ."),
    )
    readings = _quotient(rng, int(border), high, weight, side, [(n, n**3) for n in range(3, 9)])
    ask = f"Find out how dense {{0}} is: weigh it with the scale and measure its side with {{2}}. {told}"
    goals = [("used", 0), ("used", 1), ("focus", 3 if high else 4)]
    return LessonPlan(items, goals, ask, (), {"readings": readings})


def _speed(rng: Random, variation: Variation) -> LessonPlan:
    border, room = variation
    high = rng.random() < 0.5
    items = [LessonItem("track", room), LessonItem("cart", room), LessonItem("ruler"), LessonItem("clock")]
    told = answers(items, f"it is faster than {border} centimetres a second", "it is slower")
    length, time = (
        ("ruler", 0, "the track is {} centimetres long ."),
        ("clock", 1, "the cart takes {} seconds to the end ."),
    )
    readings = _quotient(rng, int(border), high, length, time, [(n, n) for n in range(4, 20)])
    ask = f"How fast does {{1}} run along {{0}}? Test {{0}} with {{2}} and {{1}} with {{3}}. {told}"
    goals = [("used", 0), ("used", 1), ("focus", 4 if high else 5)]
    return LessonPlan(items, goals, ask, (room,), {"readings": readings})


def _current(rng: Random, variation: Variation) -> LessonPlan:
    border, room = variation
    high = rng.random() < 0.5
    items = [LessonItem("battery", room), LessonItem("lamp"), LessonItem("meter")]
    told = answers(items, f"more than {border} amperes would flow", "fewer would")
    volts, ohms = ("meter", 0, "the meter shows {} volts ."), ("meter", 1, "the meter shows {} ohms .")
    readings = _quotient(rng, int(border), high, volts, ohms, [(n, n) for n in range(4, 30)])
    ask = f"Say how much current {{0}} would drive through {{1}}: test both with {{2}}. {told}"
    goals = [("used", 0), ("used", 1), ("focus", 3 if high else 4)]
    return LessonPlan(items, goals, ask, (room,), {"readings": readings})


def _mineral(rng: Random, variation: Variation) -> LessonPlan:
    """Neither property alone tells: those of one answer differ in both."""
    n, facts = rng.randrange(4), [("white", "hard"), ("black", "soft"), ("white", "soft"), ("black", "hard")]
    streak, hardness = facts[n]
    items = [LessonItem("stone"), LessonItem("tile"), LessonItem("rasp"), LessonItem("note", "study")]
    a, b, c, d = variation
    told = answers(items, f"it is {a} or {b}", f"it is {c} or {d}")
    rows = rng.sample(
        [
            f"{name} : {facts[place][1]} , leaves a {facts[place][0]} streak ."
            for place, name in enumerate(variation)
        ],
        4,
    )
    readings = [("tile", 0, f"it leaves a {streak} streak ."), ("rasp", 0, f"it is {hardness} .")]
    ask = f"Find out which mineral {{0}} is: test it with {{1}} and with {{2}}; {{3}} tells what is known. {told}"
    goals = [("used", 0), ("used", 1), ("focus", 4 if n < 2 else 5)]
    return LessonPlan(items, goals, ask, ("study",), {"readings": readings, "notes": " ".join(rows)})


def _pendulum(rng: Random, variation: Variation) -> LessonPlan:
    which, one, other = variation
    seconds = rng.sample(range(8, 60), 3)
    best = seconds.index(max(seconds) if which == "longest" else min(seconds))
    items = [LessonItem("pendulum", room) for room in (one, other, other)] + [LessonItem("clock", one)]
    readings = [("clock", n, f"it swings twenty times in {time} seconds .") for n, time in enumerate(seconds)]
    goals = [*(("used", n) for n in range(3)), ("focus", best)]
    ask = f"Test {{0}}, {{1}} and {{2}} with {{3}}, then focus on the one with the {which} string."
    return LessonPlan(items, goals, ask, (one, other), {"readings": readings})


def _stages(rng: Random, variation: Variation) -> LessonPlan:
    name, order, *rooms = variation
    line = _LIVES[name] if order == "youngest" else _LIVES[name][::-1]
    items = [LessonItem(kind, rooms[n % len(rooms)]) for n, kind in enumerate(line)]
    last = "oldest" if order == "youngest" else "youngest"
    ask = f"Focus on the stages in the life of a {name}, one after the other, from the {order} to the {last}."
    return LessonPlan(items, [("focus", n) for n in range(len(line))], ask, tuple(rooms))


def _find_animal(says: str) -> Make:
    def make(rng: Random, variation: Variation) -> LessonPlan:
        group, room, name = variation
        others = [kind for kind in ANIMALS if not belongs_to(KINDS[kind], group)]
        items = [
            LessonItem("crate", room),
            LessonItem(name),
            *(LessonItem(kind) for kind in rng.sample(others, 4)),
        ]
        article = "an" if group[0] in "aeiou" else "a"
        ask = (
            f"Find {says.format(group=group, a=article)} and focus on it, then put it on {{0}} in the {room}."
        )
        return LessonPlan(items, [("find", CLASSES.index(group)), ("delivered", 0)], ask, (room,))

    return make


def _animals(groups: Sequence[str]) -> list[Variation]:
    return [
        (g, room, kind) for g in groups for room in INDOORS for kind in ANIMALS if belongs_to(KINDS[kind], g)
    ]


_ROOMS = list(itertools.permutations(INDOORS, 2))
_ICE = [name for name in (*FLUIDS, "mercury") if SUBSTANCES[name].melts > -60]
EXPERIMENTS: Mapping[str, Lesson] = {
    "thaw": Lesson([(name,) for name in _ICE], _thaw),
    "condense": Lesson([(name,) for name in BOILING], _condense),
    "warm": Lesson(list(itertools.product(FLUIDS, map(str, range(35, 75, 5)))), _degrees(warm=True)),
    "chill": Lesson(list(itertools.product(FLUIDS, map(str, range(12, 16)))), _degrees(warm=False)),
    "evaporate": Lesson(list(itertools.product(RESIDUES, VESSELS)), _evaporate),
    "weight": Lesson([(which, *pair) for which in ("heaviest", "lightest") for pair in _ROOMS], _heaviest),
    "acid": Lesson(
        list(itertools.product(VESSELS, INDOORS)),
        _yes_or_no(
            "litmus", ("the litmus turns red .", "the litmus turns blue ."), "Test what is in {0} with {1}.",
            ("it is an acid", "it is a base"),
        ),
    ),
    "magnet": Lesson(
        list(itertools.product((*CONDUCTORS, *INSULATORS), INDOORS)),
        _yes_or_no(
            "magnet", ("the magnet draws it .", "the magnet does not move it ."), "Test {0} with {1}.",
            ("it is magnetic", "it is not"),
        ),
    ),
    "density": Lesson([(str(n),) for n in range(2, 12)], _density),
    "speed": Lesson(list(itertools.product(map(str, range(10, 60, 5)), INDOORS)), _speed),
    "current": Lesson(list(itertools.product(map(str, range(2, 10)), INDOORS)), _current),
    "mineral": Lesson(list(itertools.permutations(_MINERALS, 4))[::7], _mineral),
    "pendulum": Lesson([(which, *pair) for which in ("longest", "shortest") for pair in _ROOMS], _pendulum),
    "stages": Lesson([(name, way, *pair) for name in _LIVES for way in ("youngest", "oldest") for pair in _ROOMS], _stages),
    "order": Lesson(_animals(KINDS_OF_ANIMALS), _find_animal("{a} {group}")),
    "diet": Lesson(_animals(EATERS), _find_animal("an animal that eats {group}")),
}  # fmt: skip
