"""A beam over turns, which searches share; they differ in how they rank what was tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from turnwise.trainers.search.core import Searcher, SearchNode

Rank: TypeAlias = Callable[[SearchNode, Sequence[SearchNode]], Awaitable[list[float]]]
"""Scores the children of a node."""


async def beam_search(searcher: Searcher, rank: Rank, *, beams: int, children: int) -> None:
    """Tries ``children`` next turns from each of ``beams`` states, keeps the best ``beams`` of all, and so on to the end.

    Where what is left suffices only to play on as plain play did, the best state is played on. Ends that are in the beam stay
    in it until others are ranked higher; the best of all ends by the scorer is the result.
    """
    beam: list[tuple[float, SearchNode]] = [(0.0, searcher.root)]
    await searcher.offer(searcher.first)
    while live := [node for _, node in beam if not node.over]:
        if searcher.must_finish(live[0], len(live) * children):
            break
        pool = [(score, node) for score, node in beam if node.over]
        for node in live:
            found = await searcher.expand(node, children)
            if found:
                pool += zip(await rank(node, found), found, strict=True)
        if not pool:
            return
        beam = sorted(pool, key=lambda one: -one[0])[:beams]
        await searcher.offer(*(node for _, node in beam))
    for _, node in beam:
        if not node.over:
            end = await searcher.play_on(node)
            if end is not None:
                await searcher.offer(end)
