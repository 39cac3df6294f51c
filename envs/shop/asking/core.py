"""Kinds of asking: each makes conditions that a product fulfils, with several ways to say them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from turnwise.data_file import data_file
from turnwise.envs.shop.conditions import Condition, Fact
from turnwise.envs.shop.goods.core import Goods, Quantity
from turnwise.envs.shop.goods.draw import Listed
from turnwise.envs.shop.reward import NO_CAP
from turnwise.envs.wordings import Wordings
from turnwise.tasks.core import Split


class AskSituation(NamedTuple):
    """Data for a kind of asking: the product that is meant, and what else the shop has of its kind."""

    rng: Random
    split: Split
    meant: Listed
    price: float  # of the variant that is meant
    others: Sequence[Listed]  # of the same kind, without the one that is meant

    @property
    def goods(self) -> Goods:
        return self.meant.article.goods

    def fact(self, name: str) -> Fact:
        return self.meant.article.facts[name]

    def number(self, name: str) -> float:
        value = self.fact(name)
        assert isinstance(value, float)
        return value

    def word(self, name: str) -> str:
        value = self.fact(name)
        assert isinstance(value, str)
        return value

    def set_of(self, name: str) -> frozenset[str]:
        value = self.fact(name)
        assert isinstance(value, frozenset)
        return value

    def say(self, wordings: Wordings) -> str:
        return self.rng.choice(wordings.of(self.split))

    def quantity(self) -> Quantity:
        return self.rng.choice(self.goods.quantities)


class AskedPart(NamedTuple):
    """One thing that is asked for. ``about`` is the fact that it speaks of: a request speaks of each fact once."""

    about: str
    slots: dict[str, str]
    conditions: tuple[Condition, ...] = ()
    cap: float = NO_CAP
    options: tuple[str, ...] = ()


Maker: TypeAlias = Callable[[AskSituation], AskedPart | None]
"""Makes a part that the product meant fulfils; None where this kind of asking does not suit it."""


class AskKind(NamedTuple):
    """A kind of asking.

    ``extreme`` is set where it asks for the most or least of something among all that fulfil the rest.
    """

    name: str
    make: Maker
    extreme: bool = False

    @property
    def frames(self) -> Wordings:
        """Sentences with places for the part's slots (frames.yaml)."""
        return _frames()[self.name]


@functools.cache
def _frames() -> Mapping[str, Wordings]:
    return data_file("turnwise.envs.shop.asking", "frames", dict[str, Wordings])


class AskingWords(NamedTuple):
    """Words of requests: how they begin, and what some kinds of asking choose from."""

    openings: Wordings
    receivers: tuple[str, ...]  # of presents
    schemes: Mapping[str, tuple[str, ...]]  # what has several colours → these
    metals: frozenset[str]
    plastics: frozenset[str]
    breakable: frozenset[str]


@functools.cache
def asking_words() -> AskingWords:
    """The words of requests (words.yaml)."""
    return data_file("turnwise.envs.shop.asking", "words", AskingWords)


def dollars(value: float) -> str:
    """An amount of money.

    >>> dollars(40.0), dollars(39.5)
    ('$40', '$39.50')
    """
    return f"${value:.2f}".removesuffix(".00")
