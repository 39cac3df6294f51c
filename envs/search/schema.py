"""The fictional world: kinds of things, how they are related, and how that is said."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.data_file import data_file
from turnwise.envs.wordings import Wordings

YEAR, NUMBER = "year", "number"
"""Targets that are no entity."""


class EntityKind(NamedTuple):
    """A kind of thing: its share of a world's entities, what one and many are called, and its introduction."""

    name: str
    share: float
    one: str
    many: str
    intros: Wordings


class Relation(NamedTuple):
    """A function from one kind to another, a year or a number. None is symmetric, else a page about one thing
    would tell something of another that its own page contradicts.

    ``office``: it has three holders one after the other, of whom the last is the present one.
    """

    name: str
    source: str
    target: str
    nouns: Wordings  # "the … of X"
    says: Wordings  # {s} and {o}; for offices also {a}, {b}: from, to
    office: bool = False


@dataclass(frozen=True)
class WorldSchema:
    """Contents of the fictional world (schema.yaml), by kind and by name."""

    kinds: tuple[EntityKind, ...]
    relations: tuple[Relation, ...]
    term_says: Wordings

    @functools.cached_property
    def kind(self) -> Mapping[str, EntityKind]:
        return {kind.name: kind for kind in self.kinds}

    @functools.cached_property
    def of_kind(self) -> Mapping[str, tuple[Relation, ...]]:
        """Kind → the relations that begin at it."""
        return {kind: tuple(r for r in self.relations if r.source == kind) for kind in self.kind}

    @functools.cached_property
    def by_name(self) -> Mapping[str, Relation]:
        return {relation.name: relation for relation in self.relations}

    @functools.cached_property
    def year_of(self) -> Mapping[str, Relation]:
        """Kind → the relation that gives its year."""
        return {r.source: r for r in self.relations if r.target == YEAR}


@functools.cache
def schema() -> WorldSchema:
    """Return the schema of the fictional world."""
    return data_file("turnwise.envs.search", "schema", WorldSchema)
