"""The kinds of tasks: for each, its variations, the things it needs, its sub-goals and how it is asked.

A variation is a few words (which substance, which colour, …). With ``unseen`` knobs, dev and test have
variations of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from random import Random

from turnwise.envs.lab.experiments import EXPERIMENTS
from turnwise.envs.lab.goals import CLASSES
from turnwise.envs.lab.matter import (
    BOILING,
    CHEMISTRY,
    FLUIDS,
    GAS,
    LIQUID,
    MELTING,
    PAINT,
    SOLID,
    SUBSTANCES,
    mask,
)
from turnwise.envs.lab.plan import ANYWHERE, Lesson, LessonItem, LessonPlan, Make, Variation, answers
from turnwise.envs.lab.state import AGES, FLOWER, FRUIT, GROWN, SEEDLING
from turnwise.envs.lab.vocabulary import (
    ANIMALS,
    CONDUCTORS,
    INDOORS,
    INSULATORS,
    KINDS,
    LIFELESS,
    PLANTS,
    SEEDS,
    VESSELS,
)

_DEGREES = (30, 40, 50, 60, 70, 80)
_CLEAR = 1.5  # times as long as another an animal must live, so that whoever knows animals can tell


def _change(phase: int, verb: str) -> Make:
    def make(rng: Random, variation: Variation) -> LessonPlan:
        (name,) = variation
        goals = [("focus", 0), ("placed", 0, int(phase != SOLID)), ("running", 0), ("phase", 0, phase)]
        items = [LessonItem(rng.choice(VESSELS), content=(name,))]
        rooms = ("kitchen",) if phase == SOLID else ("kitchen", "laboratory", "foundry")
        return LessonPlan(items, goals, f"Focus on the {name}, then {verb} it.", rooms)

    return make


def _temperature(rng: Random, variation: Variation) -> LessonPlan:
    name, degrees = variation
    border = int(degrees)
    hot = rng.random() < 0.5
    warm = rng.randint(border + 5, 95) if hot else rng.randint(3, border - 5)
    items = [LessonItem("thermometer"), LessonItem("thermos", content=(name,), warm=warm)]
    told = answers(items, f"it is warmer than {border} degrees", "it is colder")
    ask = f"Measure the temperature of the {name} in {{1}}. {told}"
    return LessonPlan(items, [("noted", 1, 0), ("focus", 2 if hot else 3)], ask)


def _melting(rng: Random, variation: Variation) -> LessonPlan:
    name, degrees = variation
    border = int(degrees)
    high = rng.random() < 0.5
    point = rng.randint(border + 10, border + 120) if high else rng.randint(35, border - 10)
    items = [LessonItem("thermometer"), LessonItem(rng.choice(VESSELS), content=(name,))]
    told = answers(items, f"that is above {border} degrees", "it is below")
    ask = f"Focus on the {name}. Measure its temperature at the moment when it melts. {told}"
    goals = [
        ("focus", 1),
        ("placed", 1, 1),
        ("running", 1),
        ("noted", 1, LIQUID),
        ("focus", 2 if high else 3),
    ]
    return LessonPlan(items, goals, ask, ("kitchen", "laboratory"), {"melts": {name: point}})


def _conduct(rng: Random, variation: Variation) -> LessonPlan:
    (name,) = variation
    items = [
        LessonItem(name),
        LessonItem("battery"),
        LessonItem("lamp"),
        LessonItem("wire"),
        LessonItem("wire"),
        LessonItem("wire"),
    ]
    told = answers(items, "it conducts electricity", "it does not")
    ask = f"Test {{0}} in a circuit with {{1}} and {{2}}. {told}"
    goals = [("wired", 0), ("noted", 0), ("focus", 6 if name in CONDUCTORS else 7)]
    return LessonPlan(items, goals, ask, ("workshop",))


def _light(source: str) -> Make:
    def make(rng: Random, variation: Variation) -> LessonPlan:
        room, other = variation
        decoy = "battery" if source == "panel" else "lamp"
        items = [
            LessonItem("lamp", room),
            LessonItem(source, other),
            LessonItem("wire"),
            LessonItem("wire"),
            LessonItem(decoy),
        ]
        with_what = "with sunlight" if source == "panel" else "with {1}"
        rooms = (room, other, *(("garden",) if source == "panel" else ()))
        goals = [("wired", 0), ("wired", 1), ("shining", 0, 1)]
        return LessonPlan(items, goals, f"Make {{0}} shine {with_what}.", rooms)

    return make


def _mix(recipes: Mapping[str, tuple[str, ...]], vessel: str) -> Make:
    def make(rng: Random, variation: Variation) -> LessonPlan:
        (name,) = variation
        chain = [*(part for part in recipes[name] if part in recipes), name]
        raw = sorted({part for step in chain for part in recipes[step] if part not in recipes})
        items = [
            LessonItem(vessel),
            LessonItem(vessel),
            LessonItem("note", "study" if recipes is CHEMISTRY else ANYWHERE),
        ]
        items += [
            LessonItem("bottle" if SUBSTANCES[part].melts < 0 else "jar", content=(part,)) for part in raw
        ]
        others = sorted(
            {part for parts in recipes.values() for part in parts if part not in recipes} - set(raw)
        )
        spare = rng.sample(others, min(len(others), 2))
        items += [
            LessonItem("bottle" if SUBSTANCES[part].melts < 0 else "jar", content=(part,)) for part in spare
        ]
        goals = [(kind, mask(step)) for step in chain for kind in ("poured", "made")] + [("show", mask(name))]
        extra = {"notes": " ".join(f"{step} : {' and '.join(recipes[step])} ." for step in chain)}
        ask = f"Make {name}; {{2}} tells of what. Then focus on it."
        return LessonPlan(items, goals, ask, ("study",) if recipes is CHEMISTRY else (), extra)

    return make


def _grow(stage: int) -> Make:
    def make(rng: Random, variation: Variation) -> LessonPlan:
        name, *_ = variation
        soil = ("soil",) if rng.random() < 0.5 else ()
        items = [
            LessonItem(name),
            LessonItem("pot", "greenhouse", soil),
            LessonItem("bag", content=("soil",)),
        ]
        items += [
            LessonItem("bottle", content=("water",)),
            LessonItem("hive", "greenhouse"),
            LessonItem("pot", "greenhouse", ("soil",)),
        ]
        goals = [("planted", 0), ("watered", 0), ("stage", 0, SEEDLING), ("stage", 0, GROWN)]
        goals += [("stage", 0, later) for later in (FLOWER, FRUIT) if later <= stage]
        what = "until it bears fruit (bees must come)" if stage == FRUIT else "until it is grown"
        ask = f"Grow {{0}} {what}, then focus on it."
        return LessonPlan(items, [*goals, ("focus", 0)], ask, ("greenhouse",))

    return make


def _find(group: str) -> Make:
    def make(rng: Random, variation: Variation) -> LessonPlan:
        room, name = variation
        items = [LessonItem("crate", room), LessonItem(name)]
        others = {"animal": (*PLANTS, *LIFELESS), "plant": (*ANIMALS, *LIFELESS), "living": LIFELESS}.get(
            group, (*ANIMALS, *PLANTS)
        )
        items += [LessonItem(kind) for kind in rng.sample(others, 4)]
        what = {"animal": "an animal", "plant": "a plant", "living": "a living thing"}.get(
            group, "a lifeless thing"
        )
        ask = f"Find {what} and focus on it, then put it on {{0}} in the {room}."
        return LessonPlan(items, [("find", CLASSES.index(group)), ("delivered", 0)], ask, (room,))

    return make


def _span(rng: Random, variation: Variation) -> LessonPlan:
    long, short = variation
    spans = sorted(KINDS[name].span for name in variation)
    between = [name for name in ANIMALS if _CLEAR * spans[0] <= KINDS[name].span <= spans[1] / _CLEAR]
    items = [
        LessonItem(long),
        LessonItem(short),
        *(LessonItem(name) for name in rng.sample(between, min(2, len(between)))),
    ]
    ask = "Of all animals here, focus on the one that lives longest, then on the one that lives shortest."
    return LessonPlan(items, [("focus", 0), ("focus", 1)], ask)


def _slope(rng: Random, variation: Variation) -> LessonPlan:
    which, room, hidden = variation
    slow = rng.random() < 0.5
    times = sorted(rng.sample(range(2, 20), 2))
    seconds = {0: times[int(slow)], 1: times[int(not slow)]}
    items = [LessonItem("plane", room), LessonItem("plane", room), LessonItem("block", hidden)]
    most = 0 if slow else 1
    ask = f"Let {{2}} slide down {{0}} and {{1}}, then focus on the one with the {which} friction."
    goals = [("noted", 0), ("noted", 1), ("focus", most if which == "most" else 1 - most)]
    return LessonPlan(items, goals, ask, (room, hidden), {"seconds": seconds})


_TRAITS = (
    ("tall", "short"),
    ("round", "wrinkled"),
    ("purple", "white"),
    ("spotted", "plain"),
    ("smooth", "hairy"),
)


def _trait(rng: Random, variation: Variation) -> LessonPlan:
    name, one, other = variation
    dominant = rng.choice((one, other))
    items = [
        LessonItem(name, "greenhouse", age=AGES[FLOWER], inside=2),
        LessonItem(name, "greenhouse", age=AGES[FLOWER], inside=3),
        LessonItem("pot", "greenhouse", ("soil",)),
        LessonItem("pot", "greenhouse", ("soil",)),
        LessonItem("pot", "greenhouse", ("soil",)),
        LessonItem("sapling", nowhere=True),
        LessonItem("brush"),
        LessonItem("bottle", content=("water",)),
    ]
    told = answers(items, f"it is {one}", f"it is {other}")
    ask = f"Cross {{0}} with {{1}}, plant and grow what you get, and see which trait is dominant. {told}"
    goals = [("crossed", 5), ("planted", 5), ("watered", 5), ("stage", 5, SEEDLING), ("stage", 5, GROWN)]
    goals.append(("focus", 8 if dominant == one else 9))
    extra = {"traits": {0: one, 1: other, 5: dominant}}
    return LessonPlan(items, goals, ask, ("greenhouse",), extra)


_PAIRS = [(a, b) for a, b in itertools.permutations(ANIMALS, 2) if KINDS[a].span > 3 * KINDS[b].span]


def _boxes(names: Sequence[str]) -> list[Variation]:
    return list(itertools.product(INDOORS, names))


LESSONS: Mapping[str, Lesson] = {
    "boil": Lesson([(name,) for name in BOILING], _change(GAS, "boil")),
    "melt": Lesson([(name,) for name in MELTING], _change(LIQUID, "melt")),
    "freeze": Lesson([(name,) for name in (*FLUIDS, "mercury")], _change(SOLID, "freeze")),
    "temperature": Lesson(list(itertools.product(FLUIDS, map(str, _DEGREES))), _temperature),
    "melting": Lesson([("compound", str(degrees)) for degrees in range(80, 240, 8)], _melting),
    "conductivity": Lesson([(name,) for name in (*CONDUCTORS, *INSULATORS)], _conduct),
    "lamp": Lesson(list(itertools.permutations(INDOORS, 2)), _light("battery")),
    "sun": Lesson(list(itertools.permutations(INDOORS, 2)), _light("panel")),
    "chemistry": Lesson([(name,) for name in CHEMISTRY], _mix(CHEMISTRY, "beaker")),
    "paint": Lesson([(name,) for name in PAINT], _mix(PAINT, "cup")),
    "plant": Lesson([(name,) for name in SEEDS], _grow(GROWN)),
    "fruit": Lesson([(name,) for name in SEEDS], _grow(FRUIT)),
    "animal": Lesson(_boxes(ANIMALS), _find("animal")),
    "flora": Lesson(_boxes(PLANTS), _find("plant")),
    "living": Lesson(_boxes((*ANIMALS, *PLANTS)), _find("living")),
    "lifeless": Lesson(_boxes(LIFELESS), _find("lifeless")),
    "lifespan": Lesson(_PAIRS, _span),
    "friction": Lesson(
        [(w, a, b) for w in ("most", "least") for a, b in itertools.permutations(INDOORS, 2)], _slope
    ),
    "genetics": Lesson([(name, *pair) for name in SEEDS[:4] for pair in _TRAITS], _trait),
    **EXPERIMENTS,
}
