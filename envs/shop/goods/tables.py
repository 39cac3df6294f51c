"""The shop's goods as data: the YAML files beside this one, each read when it is first wanted."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from turnwise.data_file import data_file
from turnwise.envs.shop.goods.core import Dimension, Feature, Goods, GoodsNames, Opinion, ReviewWords

_HERE = "turnwise.envs.shop.goods"
_SHELVES = ("outdoor", "kitchen", "living", "worn", "garden")
_OF_ALL = (
    "still good after a year",
    "broke early",
    "good present",
    "colour as shown",
    "smaller than expected",
)
"""Opinions that people have of everything, which the files of goods do not repeat."""


@functools.cache
def kinds_of_goods() -> tuple[Goods, ...]:
    """The kinds of goods that the shop sells."""
    found = (goods for shelf in _SHELVES for goods in data_file(_HERE, shelf, tuple[Goods, ...]))
    return tuple(goods._replace(opinions=(*_OF_ALL, *goods.opinions)) for goods in found)


@functools.cache
def features() -> Mapping[str, Feature]:
    """Label, as tables and titles give it → feature."""
    return data_file(_HERE, "features", dict[str, Feature])


@functools.cache
def opinions() -> Mapping[str, Opinion]:
    """Name → what only reviews tell."""
    return data_file(_HERE, "opinions", dict[str, Opinion])


@functools.cache
def dimensions() -> Mapping[str, Dimension]:
    """Name → how people speak of such a quantity."""
    return data_file(_HERE, "dimensions", dict[str, Dimension])


@functools.cache
def impossible() -> Mapping[str, frozenset[str]]:
    """Material → features that no product of it has."""
    return data_file(_HERE, "impossible", dict[str, frozenset[str]])


@functools.cache
def names() -> GoodsNames:
    """Return the names, origins and colours of goods."""
    return data_file(_HERE, "names", GoodsNames)


@functools.cache
def review_words() -> ReviewWords:
    """Return the words of reviews beside opinions."""
    return data_file(_HERE, "reviews", ReviewWords)
