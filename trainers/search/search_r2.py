"""Search-R2: an episode that is not accepted is cut where it went wrong, and the rest is made anew."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher


def cut_at(values: Sequence[float]) -> int:
    """The turn after which the value falls the most, the earliest if several do. Values are of the states, one more than turns.

    >>> cut_at([0.5, 0.6, 0.2, 0.1]), cut_at([0.1, 0.2])
    (1, 0)
    """
    falls = [before - after for before, after in itertools.pairwise(values)]
    return falls.index(max(falls))


@component("search", "search_r2", paper="2602.03647", needs=("scorer",), forks=True)
async def search_r2(searcher: Searcher, *, accept: float = 0.5, revisions: int = 1) -> None:
    """Plays one episode; if its score is below ``accept`` it is cut at its worst turn, and the rest is played anew.

    Cut and regenerate of Search-R2: a discriminator accepts where π_d ≥ τ, else a trimmer names the turn k, the prefix is kept
    and the suffix made anew, once (``revisions``). The scorer is both: the turn after which its value falls the most is k. A
    revision takes the place of what it revised, as in the paper. There one model learns all three roles together, which is
    left out.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("search_r2:revisions=2", budget=300, scorer="fork:2")
    >>> e.metrics["search_episodes"] > 1
    True
    """
    at = searcher.first
    for _ in range(revisions):
        (score,) = await searcher.score([at])
        if score >= accept:
            return
        states = searcher.trail(at)
        end = await searcher.play_on(states[cut_at(await searcher.score(states))])
        if end is None:
            return
        at = end
        searcher.keep(at)
