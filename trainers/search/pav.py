"""PAV: beam search by value and progress under a prover."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.search.beam import beam_search
from turnwise.trainers.search.core import Searcher, SearchNode
from turnwise.trainers.search.scorers import make_scorer


def best_of(value: float, k: int) -> float:
    """Success of the best of k tries, each of which succeeds with this probability: 1 − (1 − Q)^k; Q is put between 0 and 1.

    >>> round(best_of(0.5, 4), 4), best_of(1.2, 4), best_of(-0.1, 4)
    (0.9375, 1.0, 0.0)
    """
    return 1.0 - (1.0 - min(1.0, max(0.0, value))) ** k


def effective(value: float, prover: float, before: float, alpha: float) -> float:
    """Q + α · (Q^μ(after) − Q^μ(before)).

    >>> q, k = [0.4, 0.5, 0.3, 0.6], 4
    >>> mu = [best_of(x, k) for x in q]
    >>> [round(after - before, 4) for before, after in zip(mu, mu[1:])]
    [0.0671, -0.1776, 0.2145]
    >>> [round(effective(q[i + 1], mu[i + 1], mu[i], 3.0), 4) for i in range(3)]
    [0.7013, -0.2328, 1.2435]
    """
    return value + alpha * (prover - before)


@component("search", "pav", paper="2410.08146", needs=("scorer",), forks=True)
async def pav(
    searcher: Searcher, *, beams: int = 1, children: int = 4, alpha: float = 3.0, k: int = 4, prover: str = ""
) -> None:
    """Beam search over turns by Q + α·A^μ: the value of a state and its progress under a prover that is not the policy.

    A^μ = Q^μ(s_h) − Q^μ(s_{h−1}). The prover is the best of k tries of the policy, Q^μ = 1 − (1 − Q)^k, or what the scorer
    `prover` says (such as `value:CHECKPOINT` of another run). A `prover` may neither fork nor be an oracle, unless the
    search's own scorer is labelled so too. The paper's α is 3 to 5; its verifier is trained on Monte-Carlo values, for which
    a value head stands here. At the beginning the progress is counted from the first state.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("pav:children=2,k=2", budget=300, scorer="fork:1")
    >>> e.metrics["search_forked"] > 0
    True
    """
    other = make_scorer(prover) if prover else None

    async def of(nodes: Sequence[SearchNode]) -> list[float]:
        if other is None:
            return [best_of(value, k) for value in await searcher.score(nodes)]
        return await other.score(searcher, nodes)

    async def by_progress(node: SearchNode, found: Sequence[SearchNode]) -> list[float]:
        (before,) = await of([node])
        values, provers = await searcher.score(found), await of(found)
        return [effective(q, mu, before, alpha) for q, mu in zip(values, provers, strict=True)]

    try:
        await beam_search(searcher, by_progress, beams=beams, children=children)
    finally:
        if other is not None:
            other.close()
