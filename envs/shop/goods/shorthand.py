"""Shorthand in which kinds of goods are written."""

from __future__ import annotations

from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.core import Need, Quantity
from turnwise.envs.wordings import ways


def measured(
    name: str,
    dimension: str,
    unit: str,
    ladder: str,
    dollars: float = 0.0,
    *,
    grows: bool = True,
    said: str = "",
) -> Quantity:
    steps = tuple(float(value) for value in ladder.split())
    return Quantity(name, dimension, unit, steps, dollars, grows, said)


def need(said: str, *conditions: Condition) -> Need:
    return Need(ways(said), conditions)


def least(fact: str, value: float) -> Condition:
    return Condition(fact, "at least", value)


def most(fact: str, value: float) -> Condition:
    return Condition(fact, "at most", value)


def has(*features: str) -> Condition:
    return Condition("features", "all", features)


DAILY = (
    "still good after a year",
    "broke early",
    "good present",
    "colour as shown",
    "smaller than expected",
)
"""Opinions that people have of everything."""
