"""Tasks of the laboratory: knobs → a lesson's variation, rooms, things and sub-goals."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from random import Random
from typing import Any, TypeAlias

from turnwise.envs.lab.knobs import LabKnobs
from turnwise.envs.lab.lessons import LESSONS
from turnwise.envs.lab.orders import ordered
from turnwise.envs.lab.plan import LessonItem, LessonPlan, Variation
from turnwise.envs.lab.solver import distance
from turnwise.envs.lab.state import NOWHERE, Laboratory, begin
from turnwise.envs.lab.vocabulary import ANIMALS, CONDUCTORS, INSULATORS, KINDS, LIFELESS, PLANTS, ROOMS
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task, digest

ENV = "turnwise/Lab-v0"
_MASKS = ("poured", "made", "show", "find", "used")  # sub-goals whose first number names no thing
_SIGNS = re.compile(r"(?:(?<!\s)\s++)?+([.,;:()])\s*+")  # blanks are looked at from their beginning only
_OTHERWISE = (  # how the same is said in train, and in dev and test
    (
        "Orders come one at a time; the next one is told when it is done, and none is told twice.",
        "You get one order after another, each of them once, as soon as the one before it is carried out.",
    ),
    ("Focus on the", "Put your focus on the"),
    (", then ", "; once that is done, "),
    ("Find out", "Establish"),
    ("Find ", "Look for "),
    ("Measure ", "Determine "),
    ("Test ", "Try out "),
    ("Say how", "Work out how"),
    ("How fast", "At what speed"),
    ("Weigh ", "Put on the scale "),
    ("Make ", "Your task: make "),
    ("Grow ", "Raise "),
    ("Cross ", "Pollinate "),
    ("Of all animals here", "Among the animals of these rooms"),
    ("If it", "Should it be that it"),
)
_SHARE = 8  # one variation in so many is dev's, and one test's
Thing: TypeAlias = list[Any]  # kind, place, content, degrees, age


@functools.cache
def variations(lesson: str, split: Split) -> Sequence[Variation]:
    """The variations of a lesson that belong to a split; each split has at least one."""
    every = sorted(LESSONS[lesson].variations, key=lambda variation: digest(ENV, lesson, variation))
    k = max(1, len(every) // _SHARE)
    return {Split.DEV: every[:k], Split.TEST: every[k : 2 * k], Split.TRAIN: every[2 * k :]}[split]


def draw_task(rng: Random, split: Split, knobs: LabKnobs) -> Task:
    """A task that no other split can draw, and that can be solved."""
    order = rng.sample(knobs.lessons, len(knobs.lessons))
    tried = iter(range(1_000_000))

    def draw(rng: Random) -> Task | None:
        if knobs.orders:
            lesson, plan = "", ordered(rng, knobs.orders, knobs.back)
        else:
            lesson = order[next(tried) // 100 % len(order)]  # drawn first, given up only where nothing fits
            known = variations(lesson, split) if knobs.unseen else LESSONS[lesson].variations
            plan = LESSONS[lesson].make(rng, rng.choice(known))
        task = _task(rng, split, lesson, plan, knobs)
        if task is None:
            return None
        length = distance(begin(Laboratory(task)))
        low, high = knobs.horizon
        if not low <= length <= min(high, knobs.turn_limit):
            return None
        options = {**task.options, "broken": _broken(rng, task, knobs)} if knobs.broken else task.options
        return Task(ENV, task.prompt, options, {"turns": int(length)})

    return first_drawn(draw, rng, split, "laboratory")


def _task(rng: Random, split: Split, lesson: str, plan: LessonPlan, knobs: LabKnobs) -> Task | None:
    """The task, put into words where it is one of the split's: most are drawn for another split."""
    rooms = _rooms(rng, plan, knobs)
    things: list[Thing] = [
        [kind, number, [], 20, 0] for number, room in enumerate(rooms) for kind in ROOMS[room]
    ]
    fixed = len(things)
    furniture = [n for n, (kind, *_) in enumerate(things) if KINDS[kind].device is None]
    extra = [LessonItem(kind) for kind in _distractors(rng, lesson, plan, knobs)]
    for item in (*plan.items, *extra):
        place = _place(rng, item, rooms, fixed, furniture, knobs)
        things.append([item.kind, place, list(item.content), item.warm, item.age])
    options: dict[str, Json] = {
        "rooms": rooms,
        "doors": [[rng.randrange(max(0, room - 3), room), room] for room in range(1, len(rooms))],
        "things": things,
        "goals": [_goal(goal, fixed) for goal in plan.goals],
        "melts": plan.extra.get("melts", {}),
        "seconds": [[fixed + n, seconds] for n, seconds in plan.extra.get("seconds", {}).items()],
        "traits": [[fixed + n, trait] for n, trait in plan.extra.get("traits", {}).items()],
        "readings": [[kind, fixed + n, says] for kind, n, says in plan.extra.get("readings", [])],
        "notes": plan.extra.get("notes", ""),
        "broken": [],
        **{name: getattr(knobs, name) for name in ("text", "commands", "turn_limit", "irreversible", "slip")},
        "known": knobs.view == "known",
    }

    if (knobs.orders or not knobs.unseen) and not in_split(split, ENV, things, options["goals"]):
        return None
    names = _names(things)[fixed:]

    def said(text: str) -> str:
        text = text.format(*names)
        return worded(text, split) if knobs.text == "full" else compact(text)

    if "orders" in plan.extra:
        options["orders"] = [said(one) for one in plan.extra["orders"]]
    return Task(ENV, said(plan.ask), options)


def _rooms(rng: Random, plan: LessonPlan, knobs: LabKnobs) -> list[str]:
    needed = {*plan.rooms, *(item.room for item in plan.items if item.room)}
    others = sorted(set(ROOMS) - needed)
    rooms = [*sorted(needed), *rng.sample(others, max(0, min(len(others), knobs.rooms - len(needed))))]
    rooms = rooms or [rng.choice(others)]
    rng.shuffle(rooms)
    return rooms


def _place(
    rng: Random, item: LessonItem, rooms: Sequence[str], fixed: int, furniture: Sequence[int], knobs: LabKnobs
) -> int:
    if item.nowhere:
        return NOWHERE
    if item.inside >= 0:
        return len(rooms) + fixed + item.inside
    room = rooms.index(item.room) if item.room else rng.randrange(len(rooms))
    if KINDS[item.kind].fixed or rng.random() >= knobs.hidden:
        return room
    # Furniture stands in the order of its rooms, so the room's own is a run of numbers.
    counts = [len(ROOMS[name]) for name in rooms]
    first = sum(counts[:room])
    own = [n for n in furniture if first <= n < first + counts[room]]
    return len(rooms) + rng.choice(own) if own else room


def _distractors(rng: Random, lesson: str, plan: LessonPlan, knobs: LabKnobs) -> list[str]:
    pool = [*LIFELESS, *CONDUCTORS, *INSULATORS, *PLANTS]
    pool += [] if lesson == "lifespan" else ANIMALS
    used = {item.kind for item in plan.items}
    pool = [kind for kind in pool if kind not in used]
    return [rng.choice(pool) for _ in range(knobs.distractors)]


def _goal(goal: tuple[Any, ...], fixed: int) -> list[Any]:
    kind, a, *rest = goal
    if kind == "shining":
        rest = [fixed + rest[0]]
    return [kind, a if kind in _MASKS else fixed + a, *rest]


def _names(things: Sequence[Thing]) -> list[str]:
    count: dict[str, int] = {}
    names: list[str] = []
    for kind, *_ in things:
        count[kind] = count.get(kind, 0) + 1
        names.append(f"{kind} {count[kind]}")
    return names


def _broken(rng: Random, task: Task, knobs: LabKnobs) -> list[int]:
    """Devices that do not work, chosen so that the task can still be done in time."""
    devices = [n for n, (kind, *_) in enumerate(task.options["things"]) if KINDS[kind].device]
    broken: list[int] = []
    for device in rng.sample(devices, len(devices)):
        tried = Task(ENV, task.prompt, {**task.options, "broken": sorted((*broken, device))})
        low, high = knobs.horizon
        if len(broken) < knobs.broken and low <= distance(begin(Laboratory(tried))) <= min(
            high, knobs.turn_limit
        ):
            broken = sorted((*broken, device))
    return broken


def worded(ask: str, split: Split) -> str:
    """Put a request into the words of a split: dev and test say it in ways that train never does.

    >>> worded("Find a plant and focus on it, then put it on crate 1.", Split.TEST)
    'Look for a plant and focus on it; once that is done, put it on crate 1.'
    """
    if split is Split.TRAIN:
        return ask
    for usual, otherwise in _OTHERWISE:
        ask = ask.replace(usual, otherwise)
    return ask


def compact(text: str) -> str:
    """A text in lower case, with a space behind every word and sign.

    >>> compact("Focus on the tin, then melt it.")
    'focus on the tin , then melt it .'
    """
    return _SIGNS.sub(r" \1 ", text.lower()).strip()
