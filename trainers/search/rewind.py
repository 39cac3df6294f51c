"""GM-PRM: half of the tries begin again at the first bad turn of the others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher, SearchNode


def first_bad(values: Sequence[float], drop: float) -> int | None:
    """The first turn after which the value has fallen by more than ``drop``; None if there is none. Values are of the states
    from the beginning on, one more than turns.

    >>> first_bad([0.5, 0.6, 0.3, 0.1], 0.2), first_bad([0.5, 0.6], 0.2), first_bad([0.5, 0.25], 0.25)
    (1, None, None)
    """
    falls = (k for k, (before, after) in enumerate(itertools.pairwise(values)) if before - after > drop)
    return next(falls, None)


def halves(n: int) -> tuple[int, int]:
    """So many tries from the beginning, and so many that are refined.

    >>> halves(8), halves(5)
    ((4, 4), (3, 2))
    """
    return n - n // 2, n // 2


@component("search", "rewind", needs=("scorer",), forks=True)
async def rewind(searcher: Searcher, *, n: int = 8, drop: float = 0.1) -> None:
    """Plays n/2 tries; each is taken back to before its first bad turn and played on from there, and the best of all is kept.

    Refined best-of-n of GM-PRM: N/2 originals and N/2 that go on from the first wrong step. A bad turn is one after which the
    scorer's value falls by more than ``drop`` (ours); in the paper a trained critic finds it and writes the corrected step, and
    here the policy says another turn. A try without a bad turn is tried anew from the beginning.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("rewind:n=4", budget=300, scorer="fork:1")
    >>> e.metrics["search_forked"] > 0
    True
    """
    originals, refined = halves(n)
    tries: list[SearchNode] = [searcher.first]
    await searcher.offer(searcher.first)
    for number in range(1, originals):
        node = await searcher.again(number)
        if node is not None:
            tries.append(node)
            await searcher.offer(node)
    for number in range(refined):
        states = searcher.trail(tries[number % len(tries)])
        bad = first_bad(await searcher.score(states), drop)
        end = await searcher.play_on(states[bad or 0])
        if end is not None:
            await searcher.offer(end)
