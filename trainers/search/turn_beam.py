"""Beam search over turns by a value."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.search.beam import beam_search
from turnwise.trainers.search.core import Searcher, SearchNode


@component("search", "turn_beam", paper="2405.03553", needs=("scorer",), forks=True)
async def turn_beam(searcher: Searcher, *, beams: int = 1, children: int = 4) -> None:
    """Tries several next turns from each of the best states and keeps the best of them by the scorer, turn by turn.

    AlphaMath's step-level beam search (B1 beams, B2 children each), whose value head is `--scorer value:CHECKPOINT`; with a
    trained PRM it is the test-time search of PROPA. A step is a turn.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("turn_beam:children=2", budget=300, scorer="oracle")
    >>> e.metrics["search_forked"] > 0, e.metrics["search_oracle"]
    (True, 1.0)
    """

    async def by_value(_: SearchNode, children: Sequence[SearchNode]) -> list[float]:
        return await searcher.score(children)

    await beam_search(searcher, by_value, beams=beams, children=children)
