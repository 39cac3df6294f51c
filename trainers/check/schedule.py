"""Requirements for schedules."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from typing import Any

from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART, variants
from turnwise.trainers.core import PartState, ScheduleMoment, Stateful


def begins_with_the_recipes_number(entry: Component) -> None:
    """Before the first update it is the number that the recipe gives."""
    for said, schedule in variants(entry):
        for first in (0.0, 0.2, 3.0):
            found = _new(schedule)(ScheduleMoment(0, 10, first, first))
            require(math.isclose(found, first), f"It begins with {found} instead of {first} ({said}).")


def gives_numbers(entry: Component) -> None:
    """Finite numbers at every update, the same ones when it is asked again: what it remembers is in its state."""
    for said, built in variants(entry):
        schedule, last = _new(built), 0.5
        remembers = _memory(schedule)
        metrics = {str(name): 0.3 for name in entry.options.values() if isinstance(name, str)}
        for update in range(20):
            seen = metrics if update else {}
            now = ScheduleMoment(update, 10, 0.5, last, seen, frozenset(seen))
            before = remembers.state() if remembers else None
            found = schedule(now)
            require(math.isfinite(found), f"At update {update} it is {found} ({said}).")
            again = _new(built)
            other = _memory(again)
            if before is not None and other is not None:
                other.restore(PartState(json.loads(json.dumps({**before.numbers}))))
            require(again(now) == found, f"Asked twice, it says otherwise ({said}).")
            last = found


def _memory(schedule: object) -> Stateful | None:
    """The schedule, if it remembers."""
    return schedule if isinstance(schedule, Stateful) else None


def _new(built: Callable[..., Any]) -> Callable[[ScheduleMoment], float]:
    """A schedule as a run makes it: an object of its own where it is a class."""
    return built() if inspect.isclass(getattr(built, "func", built)) else built


REQUIREMENTS: dict[str, Requirements] = {
    "schedule": {
        **EVERY_PART,
        "begins with the recipe's number": begins_with_the_recipes_number,
        "gives numbers": gives_numbers,
    }
}
