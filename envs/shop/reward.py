"""WebShop's score of a purchase (Yao et al. 2022, arXiv 2207.01206, §3 and goal.py of its repository).

With A goal attributes and O goal options::

    score = r_type · (n_att + n_opt + 1[price ≤ cap]) / (|A| + |O| + 1)

* n_att: goal attributes that fuzzily equal (token_set_ratio > 85) an attribute of the product, or else
  occur in its title, features or description.
  Conditions (conditions.py) are attributes too: they are tested exactly.
* n_opt: goal options that fuzzily equal a chosen option, after any text that contains a colour word
  was replaced by the first such word.
* r_type: with t the share of the goal title's nouns that the bought title has, 0 if t = 0, 0.1 if
  t < 0.1, else 0.5 if queries differ, fewer than 2 category components are shared and t ≤ 0.2, else 1.

Different from WebShop: its nouns come from spaCy's tagger; here they are ``Product.kind_words``, a
title's words without stop words, numbers, and the words of the product's own attributes and options. A
procedural title is attributes and one noun, so there this *is* the noun. Ratios are rapidfuzz's, rounded
as thefuzz does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz import fuzz, utils

from turnwise.envs.shop.catalogue import Product
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.vocabulary import COLOURS

NO_CAP = 1_000_000.0
"""WebShop's price cap where there is none."""


@dataclass(frozen=True, slots=True)
class ShopGoal:
    """Request of a task. ``asin`` is a product that fits; others may fit as well."""

    asin: str
    category: str
    query: str
    nouns: tuple[str, ...]  # of its title
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()  # values, of whatever group
    price_cap: float = NO_CAP
    conditions: tuple[Condition, ...] = ()  # counted as attributes


class ShopScore(NamedTuple):
    """A purchase's score in [0, 1] and its parts."""

    total: float
    r_type: float
    attributes: int
    options: int
    price: bool


def score(product: Product, chosen: Iterable[str], goal: ShopGoal) -> ShopScore:
    """The score of buying ``product`` with these option values."""
    values = tuple(chosen)
    price = product.price_with(values)
    attributes = sum(_has_attribute(product, wanted) for wanted in goal.attributes)
    if goal.conditions:
        attributes += _count_conditions(product, values, price, goal)
    options = _count_options(values, goal.options)
    affordable = price <= goal.price_cap
    r_type = type_score(product, goal)
    parts = len(goal.attributes) + len(goal.conditions) + len(goal.options) + 1
    return ShopScore(
        r_type * (attributes + options + affordable) / parts, r_type, attributes, options, affordable
    )


def type_score(product: Product, goal: ShopGoal) -> float:
    """r_type: whether it is the right kind of product."""
    same = len(set(product.kind_words) & set(goal.nouns))
    overlap = same / len(goal.nouns) if goal.nouns else 0.2
    if overlap == 0.0:
        return 0.0
    if overlap < 0.1:
        return 0.1
    related = product.query == goal.query or overlap > 0.2
    return 1.0 if related or len(_components(product.category) & _components(goal.category)) >= 2 else 0.5


@functools.lru_cache(maxsize=65_536)
def similar(a: str, b: str) -> bool:
    """token_set_ratio > 85, as thefuzz computes it: lower case, punctuation as space, rounded.

    >>> similar("navy blue", "blue"), similar("machine wash", "machine washable"), similar("soft", "softer")
    (True, True, False)
    """
    return a == b or round(fuzz.token_set_ratio(a, b, processor=utils.default_process)) > 85


@functools.lru_cache(maxsize=65_536)
def first_colour(text: str) -> str:
    """The first colour of WebShop's list that occurs in ``text``, else the text.

    >>> first_colour("heather navy"), first_colour("large")
    ('heather', 'large')
    """
    return next((colour for colour in COLOURS if colour in text), text)


def _has_attribute(product: Product, wanted: str) -> bool:
    if wanted in product.attributes or any(similar(own, wanted) for own in product.attributes):
        return True
    return (
        wanted in product.title.lower()
        or wanted in " ".join(product.bullets).lower()
        or wanted in product.description.lower()
    )


def _count_conditions(product: Product, values: tuple[str, ...], price: float, goal: ShopGoal) -> int:
    chosen = {
        group: value for group, offered in product.options.items() for value in values if value in offered
    }
    facts = {**product.facts, **chosen, "price": price}
    return sum(condition.holds(facts) for condition in goal.conditions)


def _count_options(chosen: tuple[str, ...], wanted: tuple[str, ...]) -> int:
    have = [first_colour(value) for value in chosen]
    return sum(any(similar(value, first_colour(want)) for value in have) for want in wanted)


@functools.lru_cache(maxsize=4096)
def _components(category: str) -> frozenset[str]:
    return frozenset(part.strip() for part in category.split("›"))
