"""Lessons: their variations, and a plan of the things, the sub-goals and the words of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, TypeAlias

Variation: TypeAlias = tuple[str, ...]
ANYWHERE = ""


class LessonItem(NamedTuple):
    """A thing that a lesson needs: its kind, its room ("" for any), what is in it, how warm, how old."""

    kind: str
    room: str = ANYWHERE
    content: tuple[str, ...] = ()
    warm: int = 20
    age: int = 0
    inside: int = -1  # the number of the item that it is in
    nowhere: bool = False  # it does not exist yet


@dataclass
class LessonPlan:
    """A lesson made ready. Items are numbered in order; sub-goals name them by these numbers."""

    items: list[LessonItem]
    goals: list[tuple[Any, ...]]
    ask: str  # with {n} for the name of item n
    rooms: tuple[str, ...] = ()  # that must be there
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


Make: TypeAlias = Callable[[Random, Variation], LessonPlan]


class Lesson(NamedTuple):
    """A kind of task."""

    variations: Sequence[Variation]
    make: Make


def answers(items: list[LessonItem], first: str, second: str) -> str:
    """Adds the two things by which an answer is given."""
    items += [LessonItem("crate"), LessonItem("basket")]
    n = len(items)
    return f"If {first}, focus on {{{n - 2}}}; if {second}, focus on {{{n - 1}}}."
