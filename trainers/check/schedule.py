"""What is required of schedules."""

from __future__ import annotations

import math

from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART, variants
from turnwise.trainers.core import ScheduleMoment


def begins_with_the_recipes_number(entry: Component) -> None:
    """Before the first update it is the number that the recipe gives."""
    for said, schedule in variants(entry):
        for first in (0.0, 0.2, 3.0):
            found = schedule(ScheduleMoment(0, 10, first, first))
            require(math.isclose(found, first), f"It begins with {found} instead of {first} ({said}).")


def gives_numbers(entry: Component) -> None:
    """Finite numbers at every update, the same ones when it is asked again; it remembers nothing itself."""
    for said, schedule in variants(entry):
        last = 0.5
        metrics = {str(name): 0.3 for name in entry.options.values() if isinstance(name, str)}
        for update in range(20):
            now = ScheduleMoment(update, 10, 0.5, last, metrics if update else {})
            found = schedule(now)
            require(math.isfinite(found), f"At update {update} it is {found} ({said}).")
            require(schedule(now) == found, f"Asked twice, it says otherwise ({said}).")
            last = found


REQUIREMENTS: dict[str, Requirements] = {
    "schedule": {
        **EVERY_PART,
        "begins with the recipe's number": begins_with_the_recipes_number,
        "gives numbers": gives_numbers,
    }
}
