"""Early rejection: most tries are given up after their first turns."""

from __future__ import annotations

import math

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher, SearchNode


def least_turns(correlation: float, length: int) -> int:
    """The fewest turns τ of ``length`` after which a score correlates so much with the final one: τ ≥ ρ²·L, from ρ ≈ √(τ/L).

    >>> least_turns(0.8, 50), round(math.sqrt(32 / 50), 4)
    (32, 0.8)
    >>> least_turns(0.1, 3)
    1
    """
    return max(1, math.ceil(correlation**2 * length - 1e-9))


def risk(tries: int, lead: float, noise: float) -> float:
    """A bound on the chance that the best of N tries is given up: (N − 1)·exp(−Δ²/4σ²).

    Δ is its lead at the end, and σ the deviation of the errors of partial scores, which falls with τ. Above 1 it says nothing.

    >>> round(risk(16, 1.5, 0.5), 4), risk(4, 1.0, 0.0)
    (1.581, 0.0)
    """
    return (tries - 1) * math.exp(-(lead**2) / (4 * noise**2)) if noise else 0.0


@component("search", "early_rejection", paper="2508.01969", needs=("scorer",), forks=True)
async def early_rejection(
    searcher: Searcher, *, n: int = 8, expand: int = 4, correlation: float = 0.6
) -> None:
    """Plays n tries for their first turns, goes on with the best n/M of them by the scorer, M ways each, and keeps the best end.

    After early rejection by partial rewards (there τ tokens of a step, here τ turns of an episode): a partial score
    correlates with the final one by ρ ≈ √(τ/L), so that τ = ρ²·L turns are played, L those of plain play. Going on M ways
    needs forks; with M = 1 each try that stays is played to its end. The best is lost with a chance of at most
    (N − 1)·exp(−Δ²/4σ²), which `turnwise audit log PATH --measure rejection` sets beside what was lost (`risk`). In training, tries
    that were rejected would have to count as failures; strategies see no scorer while they play, and it is left out there.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> options = "early_rejection:n=4,expand=2"
    >>> e = toy_search(options, budget=300, scorer="fork:1")
    >>> e.metrics["search_episodes"] > 1
    True
    """
    await searcher.offer(searcher.first)
    turns, tries = least_turns(correlation, len(searcher.first.turns)), list[SearchNode]()
    for way in range(n):
        node: SearchNode | None = searcher.root
        for depth in range(turns):
            if node is None or node.over:
                break
            node = await searcher.step(node, 0 if depth else way)
        if node is not None:
            tries.append(node)
    scores = await searcher.score(tries)
    ranked = sorted(zip(scores, tries, strict=True), key=lambda one: -one[0])
    for _, node in ranked[: max(1, n // expand)]:
        await searcher.offer(node)
        for _ in range(0 if node.over else expand):
            end = await searcher.play_on(node)
            if end is not None:
                await searcher.offer(end)
