"""The numbers of a recipe as its schedules set them: tried before a run, where they depend on the update alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import pydantic

from turnwise.errors import RecipeError, TurnwiseError
from turnwise.trainers.core import ScheduleMoment
from turnwise.trainers.recipe.dotted import changed
from turnwise.trainers.recipe.errors import explain_invalid
from turnwise.trainers.recipe.numbers import number_at, part_with
from turnwise.trainers.recipe.part import Part, made
from turnwise.trainers.recipe.problems import RecipeProblem, found_by
from turnwise.trainers.recipe.schema import Recipe, plain


def set_numbers(recipe: Recipe, values: Mapping[str, float], update: int) -> Recipe:
    """The recipe with the values that its schedules give for an update of it, counted from 0.

    Raises:
        RecipeError: a number cannot have such a value.
    """
    data: Any = plain(recipe)
    for key, value in values.items():
        data = changed(data, key, value)
    try:
        return Recipe.model_validate(data)
    except pydantic.ValidationError:
        for key, value in values.items():
            _check_field(recipe, key, value, update)
        raise


def as_scheduled(first: float, value: float) -> float:
    """Return what a schedule gives to a number that begins as ``first``: a whole one stays whole.

    >>> as_scheduled(4, 2.6), as_scheduled(4.0, 2.6)
    (3, 2.6)
    """
    return round(value) if isinstance(first, int) else value


def misfitting_schedules(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Numbers that can have no schedule, and schedules that give a number what it cannot be.

    The greatest and the smallest value are tried, since what a number may be lies between two bounds.
    """
    for key, part in recipe.schedule.items():
        wrong = list(found_by(lambda k=key: number_at(recipe, k)))
        yield from wrong
        values = list[float]()
        if not wrong:
            wrong = list(found_by(lambda k=key, p=part, v=values: v.extend(_foreseen(recipe, k, p))))
            yield from wrong
        if values and not wrong:
            yield from found_by(lambda k=key, v=values: _try_extremes(recipe, k, v))


class _Metrics(dict[str, float]):
    """Metrics that nobody knows yet: looking at them ends the trial."""

    def _asked(self, *_: object) -> NoReturn:
        raise _AsksMetricsError

    __getitem__ = __contains__ = __iter__ = __len__ = get = keys = items = values = _asked


class _Names(frozenset[str]):
    """The names of metrics that nobody knows yet."""

    def _asked(self, *_: object) -> NoReturn:
        raise _AsksMetricsError

    __contains__ = __iter__ = __len__ = __and__ = __or__ = __sub__ = _asked


class _AsksMetricsError(Exception):
    """A schedule looked at what the updates before measured."""


def _foreseen(recipe: Recipe, key: str, part: Part) -> list[float]:
    """Return what a schedule sets a number to in each update, as far as it goes by the update alone.

    Raises:
        RecipeError: its options do not fit.
    """
    schedule, first = made(part, "schedule"), number_at(recipe, key)
    last, values = first, list[float]()
    for update in range(recipe.updates):
        try:
            last = schedule(ScheduleMoment(update, recipe.updates, first, last, _Metrics(), _Names()))
        except _AsksMetricsError:
            break
        values.append(as_scheduled(first, last))
    return values


def _try_extremes(recipe: Recipe, key: str, values: list[float]) -> None:
    """Refuse the first update whose value does not fit, if the greatest or the smallest one does not."""
    try:
        for extreme in {min(values), max(values)}:
            _check_value(recipe, key, extreme, values.index(extreme))
    except RecipeError:
        for update, value in enumerate(values):
            _check_value(recipe, key, value, update)
        raise


def _check_value(recipe: Recipe, key: str, value: float, update: int) -> None:
    """Refuse a value that does not fit the number, the options of its part, or the groups of an update.

    Raises:
        RecipeError: naming the update, the key and the value.
    """
    _check_field(recipe, key, value, update)
    try:
        found = part_with(set_numbers(recipe, {key: value}, update), key)
        if found is not None:
            made(*found)
    except TurnwiseError as error:
        raise RecipeError(
            f"{_said(recipe, key, value, update)}, which does not fit: {error.cause}", _remedy(recipe, key)
        ) from None
    groups = recipe.rollout.groups
    if key == "optimizer.minibatches" and 0 < groups < value:
        raise RecipeError(
            f"{_said(recipe, key, value, update)}, more than the {groups} groups of an update, which stay whole.",
            f"{_remedy(recipe, key)} It must be at most {groups}, or raise rollout.groups.",
        )


def _check_field(recipe: Recipe, key: str, value: float, update: int) -> None:
    try:
        Recipe.model_validate(changed(plain(recipe), key, value))
    except pydantic.ValidationError as error:
        said = next(explain_invalid(error, {})).remedy.partition(";")[0].removesuffix(".")
        raise RecipeError(
            f"{_said(recipe, key, value, update)}, which it cannot be.", f"{_remedy(recipe, key)} {said}."
        ) from None


def _said(recipe: Recipe, key: str, value: float, update: int) -> str:
    name = recipe.schedule[key].name
    return f"schedule {name!r} sets {key} to {value:g} in update {update + 1} of {recipe.updates}"


def _remedy(recipe: Recipe, key: str) -> str:
    name = recipe.schedule[key].name
    own = recipe.schedule[key].component("schedule").options
    if "to" in own:
        return f"Give the schedule another end: {key}: {{name: {name}, to: …}}."
    if "values" in own:
        return f"Give the schedule other values: {key}: {{name: {name}, at: […], values: […]}}."
    bounds = ", ".join(name for name in ("low", "high") if name in own)
    return f"Give the schedule of {key} bounds ({bounds})." if bounds else f"Give {key} another schedule."
