"""Signals that a run measures: those that its parts ask for, and what these ask for in turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from turnwise.errors import RecipeError
from turnwise.registry import Component, components

LEARNER = frozenset({"reference"})
"""Signals that the learner itself reads: the log-probabilities of the frozen reference model."""


class ChosenSignal(NamedTuple):
    """A signal of a recipe, with its options."""

    entry: Component
    options: Mapping[str, Any]


def measurable() -> frozenset[str]:
    """The names of all signals that a trainer can measure."""
    return LEARNER.union(*(entry.gives for entry in components("signal")))


def sources_of(
    needs: Collection[str], given: Collection[str], asked: Mapping[str, Mapping[str, Any]]
) -> list[ChosenSignal]:
    """The signals to be measured, and those that they need in turn, in the order of the registry.

    Args:
        needs: names of what the parts ask for.
        given: what a strategy or a judge gives, which is not measured again.
        asked: the recipe's own choice of signals with their options, by name.

    Raises:
        RecipeError: a name is given by several signals, and the recipe does not say by which.
    """
    chosen: dict[str, ChosenSignal] = {}
    wanted = [name for name in sorted(needs) if name not in given and name not in LEARNER]
    for name in wanted:
        offers = [entry for entry in components("signal") if name in entry.gives]
        offers = [entry for entry in offers if entry.name in asked] or offers
        if len(offers) > 1:
            names = ", ".join(entry.name for entry in offers)
            raise RecipeError(
                f"Parts of this recipe need {name!r}, which several signals give: {names}.",
                f"Say which: signals: [{offers[0].name}].",
            )
        for entry in offers:
            if entry.name not in chosen:
                chosen[entry.name] = ChosenSignal(entry, asked.get(entry.name, {}))
                wanted.extend(need for need in entry.needs if need not in LEARNER)
    return [chosen[entry.name] for entry in components("signal") if entry.name in chosen]
