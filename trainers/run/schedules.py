"""Numbers of a recipe that change during a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnwise.tasks.core import Json
from turnwise.trainers.core import PartState, ScheduleMoment, Stateful
from turnwise.trainers.recipe.numbers import number_at
from turnwise.trainers.recipe.part import made
from turnwise.trainers.recipe.scheduled import as_scheduled, set_numbers
from turnwise.trainers.recipe.schema import Recipe

CLOCK = ("seconds", "tokens_per_second")
"""Endings of the names of metrics that go by the clock: a run that depended on them could not be repeated."""


class Schedules:
    """The scheduled numbers of a run, or of a phase. Before each update :meth:`at` gives the recipe with their values.

    Args:
        recipe: of the run, or of the phase.
        begins: the number of its first update, from 0.

    Raises:
        RecipeError: a key or an option is not right.
    """

    def __init__(self, recipe: Recipe, begins: int = 0) -> None:
        self._recipe, self._begins = recipe, begins
        self._parts = {key: made(part, "schedule") for key, part in recipe.schedule.items()}
        self._first = {key: number_at(recipe, key) for key in recipe.schedule}
        self._last: dict[str, float] = dict(self._first)
        self._metrics: dict[str, float] = {}
        self._fresh: frozenset[str] = frozenset()

    def at(self, update: int) -> Recipe:
        """The recipe of an update, numbers as they are then.

        Raises:
            RecipeError: a schedule that goes by metrics gives a number what it cannot be.
        """
        if not self._first:
            return self._recipe
        values: dict[str, float] = {}
        for key, schedule in self._parts.items():
            first = self._first[key]
            now = ScheduleMoment(
                update - self._begins,
                self._recipe.updates,
                first,
                self._last[key],
                self._metrics,
                self._fresh,
            )
            self._last[key] = schedule(now)
            values[key] = as_scheduled(first, self._last[key])
        return set_numbers(self._recipe, values, update - self._begins)

    @property
    def values(self) -> dict[str, float]:
        """Of the newest update, under the names of metrics."""
        return {f"schedule/{key}": value for key, value in self._last.items()}

    def seen(self, metrics: Mapping[str, Any]) -> None:
        """Remember the metrics of an update for the next one."""
        if self._first:
            found = {
                name: float(value)
                for name, value in metrics.items()
                if isinstance(value, (int, float)) and not name.endswith(CLOCK)
            }
            self._metrics |= found
            self._fresh = frozenset(found)

    def state(self) -> PartState:
        """Return what a checkpoint keeps."""
        if not self._first:
            return PartState()
        parts: dict[str, Json] = {key: {**part.state().numbers} for key, part in self._remembering.items()}
        numbers: dict[str, Json] = {
            "last": {**self._last}, "metrics": {**self._metrics}, "fresh": sorted(self._fresh), "parts": parts
        }  # fmt: skip
        return PartState(numbers)

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""
        numbers: Any = state.numbers
        if numbers:
            self._last, self._metrics = dict(numbers["last"]), dict(numbers["metrics"])
            self._fresh = frozenset(numbers["fresh"])
            for key, part in self._remembering.items():
                part.restore(PartState(numbers["parts"][key]))

    @property
    def _remembering(self) -> dict[str, Stateful]:
        return {key: part for key, part in self._parts.items() if isinstance(part, Stateful)}
