"""The knowledge graph of a world, as columns of numbers: a function of its seed.

Entities are numbered through; those of one kind are neighbours. A relation is one column; offices have three.
A million entities take about 40 MB and three seconds.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pydantic
from numpy.typing import NDArray

from turnwise.envs.search.schema import NUMBER, YEAR, Relation, schema
from turnwise.envs.search.vocabulary import Part, WorldNames, name_pieces
from turnwise.tasks.core import Split, derive_rng, digest

NOW = 1960
_BORN = (1868, 1900)  # so that everybody is of age to found, write and govern when they are said to
_MAKERS = {
    "city_founded": "city_founder", "company_founded": "company_founder", "school_founded": "school_founder",
    "published": "author", "released": "director",
}  # fmt: skip


class WorldSpec(pydantic.BaseModel, extra="forbid", frozen=True):
    """Everything that determines a world. Shares (0 to 1) are of the items that they can apply to."""

    seed: str
    passages: int = pydantic.Field(2000, ge=60, le=1_000_000)
    aliases: float = pydantic.Field(0.25, ge=0, le=1)  # entities with a second name
    namesakes: float = pydantic.Field(0.1, ge=0, le=0.5)  # people who share a full name
    outdated: float = pydantic.Field(0.1, ge=0, le=0.2)  # pages that are old editions of others
    stated: float = pydantic.Field(0.9, ge=0.5, le=1)  # facts that are told anywhere
    hostile: float = pydantic.Field(0.02, ge=0, le=1)  # pages with text that would forge an answer
    disputed: float = pydantic.Field(0.0, ge=0, le=0.3)  # pages that are reports which contradict one another
    long: float = pydantic.Field(0.0, ge=0, le=1)  # pages with tables and a history beside what is asked for
    part: Part = "train"  # whose names and language it takes

    @property
    def split(self) -> Split:
        """The split whose names and language the world has."""
        return Split(self.part)

    @property
    def key(self) -> str:
        return digest("encyclopedia", 3, self.model_dump())


class OfficeTerm(NamedTuple):
    """A time in office: from the first year to the second."""

    person: int
    place: int
    relation: Relation
    start: int
    end: int


@dataclass(frozen=True)
class Edition:
    """An old page about an entity, as of a year."""

    entity: int
    year: int


class SourceReport(NamedTuple):
    """Report of a source on a disputed fact. Of the sources of a fact the weightiest one is right."""

    entity: int
    relation: Relation
    value: int
    source: str  # register, newspaper or memoir
    year: int  # when it was written

    @property
    def weight(self) -> tuple[int, int]:
        """A register outweighs a newspaper, and a newspaper a memoir; of two of a kind, the later one."""
        return WEIGHTS[self.source], self.year


WEIGHTS: Mapping[str, int] = {"memoir": 1, "newspaper": 2, "register": 3}
"""Sources that contradict one another, and which of them counts for more."""
SOURCES = 3
"""Number of sources that tell a disputed fact."""
_LAST_DISPUTED = 1940  # so that all sources are later


class WorldGraph:
    """The entities of a world and their relations."""

    def __init__(self, spec: WorldSpec) -> None:
        self.spec = spec
        self.editions = int(spec.passages * spec.outdated)
        self.reports = int(spec.passages * spec.disputed) // SOURCES * SOURCES
        n = spec.passages - self.editions - self.reports
        self.count = {kind.name: max(3, int(kind.share * n)) for kind in schema().kinds}
        self.count["person"] += n - sum(self.count.values())
        self.first: dict[str, int] = {}
        for kind in self.count:
            self.first[kind] = sum(self.count[other] for other in self.first)
        self.size = n
        self._starts = list(self.first.values())
        self._kinds = list(self.first)
        self.names = WorldNames(derive_rng(spec.seed, "names"), self.count["person"], spec.part)
        rng = self._rng("entities")
        self.dice = rng.integers(0, 2**31, n, dtype=np.int64)
        self._alias = rng.random(n) < spec.aliases
        self._twins = int(self.count["person"] * spec.namesakes / 2)
        self.column: dict[str, NDArray[np.int32]] = {}
        for relation in sorted(
            schema().relations,
            key=lambda r: (r.target == YEAR, list(_MAKERS).index(r.name) if r.name in _MAKERS else -1),
        ):
            if not relation.office:  # years last, since they follow from who made what
                self.column[relation.name] = self._draw(relation)
        self._told = {r.name: self._rng("told", r.name).random(self.count[r.source]) < spec.stated
                      for r in schema().relations}  # fmt: skip
        self._told["mentor"][0] = False  # of the oldest
        self.disputes = self._disputes()
        self._disputed = {(entity, relation.name) for entity, relation in self.disputes}
        self.reports = len(self.disputes) * SOURCES
        offices = [r for r in schema().relations if r.office]
        self.holders = {r.name: self._holders(r) for r in offices}
        self.terms = {r.name: self._terms(r) for r in offices}

    # --- entities --------------------------------------------------------------------------------

    def kind(self, entity: int) -> str:
        return self._kinds[bisect.bisect_right(self._starts, entity) - 1]

    def profession(self, person: int) -> str:
        n = self.count["person"]
        other = person - (n - self._twins) if person >= n - self._twins else person
        known = name_pieces().professions
        shift = 1 + int(self.dice[person]) % (len(known) - 1) if other != person else 0
        return known[(int(self.dice[other]) // 64 + shift) % len(known)]

    def has_namesake(self, entity: int) -> bool:
        n = self.count["person"]
        return entity < self._twins or n - self._twins <= entity < n

    def name(self, entity: int) -> str:
        kind, n = self.kind(entity), self.count["person"]
        if kind == "person":
            return self.names.person(entity - (n - self._twins) if entity >= n - self._twins else entity)
        return self.names.thing(kind, entity, int(self.dice[entity]))

    def alias(self, entity: int) -> str | None:
        """Its other name; people with namesakes have none."""
        if not self._alias[entity] or self.has_namesake(entity):
            return None
        word = self.names.word(self.size + entity)  # beyond those that are names
        if self.kind(entity) == "person":
            return f"{word} {self.name(entity).split()[-1]}"
        return word if self.kind(entity) in ("city", "region") else f"the {word}"

    def title(self, entity: int) -> str:
        name = self.name(entity)
        return f"{name} ({self.profession(entity)})" if self.has_namesake(entity) else name

    def unknown_name(self, kind: str, draw: int) -> str | None:
        """A name of this kind that nothing has, made of a word that is free."""
        entity = draw % self.size
        return None if self._alias[entity] else self.names.thing(kind, self.size + entity, draw // self.size)

    def mention(self, entity: int) -> str:
        """A phrase that means this entity and no other."""
        name = self.name(entity)
        return f"the {self.profession(entity)} {name}" if self.has_namesake(entity) else name

    # --- facts -----------------------------------------------------------------------------------

    def told(self, entity: int, relation: Relation) -> bool:
        """Say whether any page states this fact."""
        return relation.office or bool(self._told[relation.name][entity - self.first[relation.source]])

    def is_disputed(self, entity: int, relation: Relation) -> bool:
        """Say whether sources contradict each other about this fact.

        The entity's own page does not tell such a fact.
        """
        return (entity, relation.name) in self._disputed

    def reports_on(self, dispute: int) -> list[SourceReport]:
        """Return the sources' reports on disputed fact number ``dispute``, in no order."""
        entity, relation = self.disputes[dispute]
        right, rng = self.target(entity, relation), derive_rng(self.spec.seed, "reports", dispute)
        first = rng.choice((-1, 1)) * rng.randint(1, 9)
        other = -first - rng.randint(0, 3) if first > 0 else -first + rng.randint(0, 3)
        wrong = [right + first, right + (first if rng.random() < 0.4 else other)]
        kinds = sorted(rng.choices(list(WEIGHTS), k=SOURCES), key=WEIGHTS.__getitem__, reverse=True)
        written = rng.sample(range(_LAST_DISPUTED + 10, NOW + 1), SOURCES)
        told = sorted(
            zip(kinds, written, strict=True), key=lambda one: (WEIGHTS[one[0]], one[1]), reverse=True
        )
        found = [
            SourceReport(entity, relation, value, kind, year)
            for (kind, year), value in zip(told, (right, *wrong), strict=True)
        ]
        rng.shuffle(found)
        return found

    def target(self, entity: int, relation: Relation) -> int:
        """The related entity (of an office: its present holder), year or number."""
        row = entity - self.first[relation.source]
        if relation.office:
            return int(self.holders[relation.name][row, -1])
        return int(self.column[relation.name][row])

    def sources(self, relation: Relation, target: int) -> list[int]:
        """All entities of which a page states that they are so related to ``target``."""
        if relation.office:
            column = self.holders[relation.name][:, -1]
            return (np.flatnonzero(column == target) + self.first[relation.source]).tolist()
        found = (self.column[relation.name] == target) & self._told[relation.name]
        return (np.flatnonzero(found) + self.first[relation.source]).tolist()

    def office_terms(self, place: int, relation: Relation) -> list[OfficeTerm]:
        """Its holders one after the other; the last is in office still."""
        row = place - self.first[relation.source]
        starts = self.terms[relation.name][row].tolist()
        ends = [*starts[1:], NOW]
        people = self.holders[relation.name][row].tolist()
        return [OfficeTerm(p, place, relation, a, b) for p, a, b in zip(people, starts, ends, strict=True)]

    def terms_of(self, person: int) -> list[OfficeTerm]:
        """The past times in office that this person's page tells, two at most."""
        found: list[OfficeTerm] = []
        for name, (order, start) in self._by_holder.items():
            relation = schema().by_name[name]
            for flat in order[start[person] : start[person + 1]][:2].tolist():
                row, which = divmod(flat, 3)
                if which < 2:
                    found.append(self.office_terms(self.first[relation.source] + row, relation)[which])
        return found[:2]

    def edition(self, number: int) -> Edition:
        """Old page ``number``: of a city or a company, from the time of an earlier holder of its office."""
        choices = self.count["city"] + self.count["company"]
        at = number * 7919 % choices
        kind = "city" if at < self.count["city"] else "company"
        entity = self.first[kind] + (at if kind == "city" else at - self.count["city"])
        relation = next(r for r in schema().of_kind[kind] if r.office)
        term = self.office_terms(entity, relation)[number // choices % 2]
        return Edition(entity, (term.start + term.end) // 2)

    # --- inside ----------------------------------------------------------------------------------

    def _disputes(self) -> list[tuple[int, Relation]]:
        """Years about which sources contradict each other; told by nothing else."""
        found: list[tuple[int, Relation]] = []
        if not self.reports:
            return found
        for entity in self._rng("disputed").permutation(self.size).tolist():
            relation = schema().year_of.get(self.kind(entity))
            if relation is None or self.target(entity, relation) > _LAST_DISPUTED:
                continue
            self._told[relation.name][entity - self.first[relation.source]] = False
            found.append((entity, relation))
            if len(found) * SOURCES >= self.reports:
                break
        return found

    @cached_property
    def professions(self) -> NDArray[np.str_]:
        """The profession of every person."""
        first = self.first["person"]
        return np.array([self.profession(first + n) for n in range(self.count["person"])])

    @cached_property
    def _by_holder(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each office: positions in ``holders`` ordered by person, and where each person begins."""
        found: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        for name, holders in self.holders.items():
            flat = holders.ravel()
            order = np.argsort(flat, kind="stable")
            found[name] = order, np.searchsorted(flat[order], np.arange(self.count["person"] + 1))
        return found

    def _rng(self, *names: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(int(digest(self.spec.seed, *names), 16)))

    def _draw(self, relation: Relation) -> NDArray[np.int32]:
        rng, n = self._rng("relation", relation.name), self.count[relation.source]
        if relation.target == NUMBER:
            return (rng.integers(1_000, 900_000, n) // 100 * 100 + rng.integers(1, 100, n)).astype(np.int32)
        if relation.target == YEAR:
            return self._years(relation, rng, n)
        if relation.name == "mentor":  # people are numbered from the oldest to the youngest
            return (rng.random(n) * np.arange(n)).astype(np.int32)
        size = self.count[relation.target]
        row = rng.integers(0, size, n, dtype=np.int32)
        if relation.source == relation.target:
            row = np.where(row == np.arange(n), (row + 1) % size, row).astype(np.int32)
        return row + np.int32(self.first[relation.target])

    def _years(self, relation: Relation, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        if relation.name == "born":
            return np.sort(rng.integers(*_BORN, n, dtype=np.int32))
        if relation.name not in _MAKERS:
            return rng.integers(1930, NOW, n, dtype=np.int32)
        adult = self.column["born"][self.column[_MAKERS[relation.name]]] + 20
        if relation.name == "released":
            book = self.column["source"] - self.first["book"]
            adult = np.maximum(adult, self.column["published"][book])
        most = {"published": 30, "released": 8}.get(relation.name, 11)
        return (adult + rng.integers(0, most, n)).astype(np.int32)

    def _holders(self, relation: Relation) -> NDArray[np.int32]:
        rng, people = self._rng("holders", relation.name), self.count["person"]
        first = rng.integers(0, people, self.count[relation.source])
        step = rng.integers(1, max(2, people // 3), self.count[relation.source])
        return np.stack([(first + i * step) % people for i in range(3)], axis=1).astype(np.int32)

    def _terms(self, relation: Relation) -> NDArray[np.int32]:
        rng, n = self._rng("terms", relation.name), self.count[relation.source]
        lengths = rng.integers(3, 11, (n, 3))
        return (NOW - np.cumsum(lengths[:, ::-1], axis=1)[:, ::-1]).astype(np.int32)
