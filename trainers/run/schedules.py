"""Numbers of a recipe that change during a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnwise.tasks.core import Json
from turnwise.trainers.core import PartState, ScheduleMoment
from turnwise.trainers.recipe.load import changed
from turnwise.trainers.recipe.numbers import number_at
from turnwise.trainers.recipe.schema import Recipe, plain

CLOCK = ("seconds", "tokens_per_second")
"""What metrics that go by the clock end in: a run that depended on them could not be repeated."""


class Schedules:
    """The scheduled numbers of a run. Before each update :meth:`at` gives the recipe with their values.

    Raises:
        RecipeError: a key or an option is not right.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._first = {key: number_at(recipe, key) for key in recipe.schedule}
        self._last: dict[str, float] = dict(self._first)
        self._metrics: dict[str, float] = {}

    def at(self, update: int) -> Recipe:
        """The recipe of an update, numbers as they are then."""
        if not self._first:
            return self._recipe
        data: Any = plain(self._recipe)
        for key, part in self._recipe.schedule.items():
            first = self._first[key]
            now = ScheduleMoment(update, self._recipe.updates, first, self._last[key], self._metrics)
            self._last[key] = part.build("schedule")(now)
            value = round(self._last[key]) if isinstance(first, int) else self._last[key]
            data = changed(data, key, value)
        return Recipe.model_validate(data)

    @property
    def values(self) -> dict[str, float]:
        """Of the newest update, under the names of metrics."""
        return {f"schedule/{key}": value for key, value in self._last.items()}

    def seen(self, metrics: Mapping[str, Any]) -> None:
        """Remember the metrics of an update for the next one."""
        if self._first:
            self._metrics |= {
                name: float(value)
                for name, value in metrics.items()
                if isinstance(value, (int, float)) and not name.endswith(CLOCK)
            }

    def state(self) -> PartState:
        """What a checkpoint keeps."""
        numbers: dict[str, Json] = (
            {"last": {**self._last}, "metrics": {**self._metrics}} if self._first else {}
        )
        return PartState(numbers)

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""
        if state.numbers:
            self._last = {**dict(state.numbers["last"])}  # pyright: ignore
            self._metrics = {**dict(state.numbers["metrics"])}  # pyright: ignore
