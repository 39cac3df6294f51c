"""Vague clues: what is said of a thing without naming it, so that all of it together means one thing only.

As in BrowseComp (Wei et al. 2025, arXiv 2504.12516) a question is made from its answer: easy to check, hard to find. A clue
tells a decade, a range, a profession, or something of somebody related; one of them names what stands two steps away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnwise.envs.search.graph import WorldGraph
from turnwise.envs.search.phrases import search_phrases
from turnwise.envs.search.schema import NUMBER, YEAR, Relation, schema

_MOST = 6  # clues of a question
_TRIES = 8  # orders in which clues are tried


class Clue(NamedTuple):
    """Clue's text, the entities of the kind that it fits, and the pages that tell it."""

    text: str
    fits: NDArray[np.bool_]
    pages: tuple[int, ...]


def clues_to(graph: WorldGraph, rng: Random, entity: int) -> list[Clue] | None:
    """Clues that together fit ``entity`` alone, the one with a name among them; None if none were found."""
    named = _named(graph, rng, entity)
    others = [*_own(graph, rng, entity), *_of_related(graph, rng, entity)]
    if not named or len(others) < 2:
        return None
    for _ in range(_TRIES):
        rng.shuffle(others)
        taken = [rng.choice(named)]
        for clue in others:
            fits = np.logical_and.reduce([one.fits for one in taken])
            if len(taken) >= 3 and int(fits.sum()) == 1:
                return taken
            narrowed = fits & clue.fits
            if len(taken) < _MOST and (len(taken) < 3 or int(narrowed.sum()) < int(fits.sum())):
                taken.append(clue)
        if int(np.logical_and.reduce([one.fits for one in taken]).sum()) == 1:
            return taken
    return None


def _own(graph: WorldGraph, rng: Random, entity: int) -> list[Clue]:
    """Return clues of the entity's own years and numbers, and of a person's profession."""
    kind = graph.kind(entity)
    found: list[Clue] = []
    if kind == "person":
        found.append(_profession(graph, entity, "the person", lambda of: of, (entity,)))
    for relation in schema().of_kind[kind]:
        if relation.target in (YEAR, NUMBER) and graph.told(entity, relation):
            found.append(_range(graph, rng, entity, relation, "it", lambda of: of, (entity,)))
    return found


def _of_related(graph: WorldGraph, rng: Random, entity: int) -> list[Clue]:
    """The same of somebody or something related, who is not named."""
    found: list[Clue] = []
    for relation in _links(graph, entity):
        other = graph.target(entity, relation)
        column = _column(graph, relation)
        who, pages = f"its {rng.choice(relation.nouns.of(graph.spec.split))}", (entity, other)
        if relation.target == "person":
            found.append(_profession(graph, other, who, lambda of, column=column: of[column], pages))
        year = schema().year_of.get(relation.target)
        for own in filter(
            None, (year, next((r for r in schema().of_kind[relation.target] if r.target == NUMBER), None))
        ):
            if graph.told(other, own):
                found.append(_range(graph, rng, other, own, who, lambda of, column=column: of[column], pages))
    return found


def _named(graph: WorldGraph, rng: Random, entity: int) -> list[Clue]:
    """Return clues that name an entity two steps away."""
    found, split = list[Clue](), graph.spec.split
    for relation in _links(graph, entity):
        other = graph.target(entity, relation)
        column = _column(graph, relation)
        for onward in _links(graph, other):
            far = graph.target(other, onward)
            if far == entity:
                continue
            text = rng.choice(search_phrases().clues["far"].of(split)).format(
                far=rng.choice(onward.nouns.of(split)), near=rng.choice(relation.nouns.of(split)), name=graph.mention(far)
            )  # fmt: skip
            found.append(
                Clue(
                    text,
                    (_column(graph, onward) + graph.first[onward.target])[column] == far,
                    (other, entity),
                )
            )
    return found


def _links(graph: WorldGraph, entity: int) -> list[Relation]:
    return [
        one for one in schema().of_kind[graph.kind(entity)]
        if one.target in graph.count and not one.office and graph.told(entity, one)
    ]  # fmt: skip


def _column(graph: WorldGraph, relation: Relation) -> NDArray[np.int64]:
    """The places of the related ones among their kind."""
    return graph.column[relation.name].astype(np.int64) - graph.first[relation.target]


_Spread = Callable[[NDArray[np.generic]], NDArray[np.generic]]
"""From a column of a related kind to one of the kind that is asked for."""


def _profession(graph: WorldGraph, person: int, who: str, spread: _Spread, pages: Sequence[int]) -> Clue:
    mine = graph.profession(person)
    article = "an" if mine[0] in "aeiou" else "a"
    said = (
        search_phrases().clues["profession"].of(graph.spec.split)[0].format(who=who, one=f"{article} {mine}")
    )
    return Clue(said, spread(graph.professions) == mine, tuple(pages))


def _range(
    graph: WorldGraph,
    rng: Random,
    entity: int,
    relation: Relation,
    who: str,
    spread: _Spread,
    pages: Sequence[int],
) -> Clue:
    """A decade, or some years around a year; a bound of a number."""
    value, split = graph.target(entity, relation), graph.spec.split
    column = graph.column[relation.name]
    if relation.target == NUMBER:
        bound = (value // 100_000 + 1) * 100_000
        below = rng.random() < 0.5 or value <= 100_000 or value % 100_000 == 0
        said = f"fewer than {bound:,}" if below else f"more than {bound - 100_000:,}"
        fits = column < bound if below else column > bound - 100_000
        where = "the city" if who == "it" else who
        text = search_phrases().clues["people"].of(split)[0].format(many=said, where=where)
        return Clue(text, spread(fits).astype(np.bool_), tuple(pages))
    if rng.random() < 0.5:
        low, high, said = (
            value // 10 * 10,
            value // 10 * 10 + 9,
            search_phrases().clues["decade"].of(split)[0].format(decade=value // 10 * 10),
        )
    else:
        low = value - rng.randint(1, 6)
        high = value + rng.randint(1, 6)
        said = search_phrases().clues["within"].of(split)[0].format(low=low, high=high)
    fits = (column >= low) & (column <= high)
    return Clue(
        f"{who} {search_phrases().came_to_be[relation.source].of(split)[0]} {said}",
        spread(fits).astype(np.bool_),
        tuple(pages),
    )
