"""BFS-Prover: best-first search by length-normalised log-probability."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher, SearchNode


def priority(logprob: float, length: int, alpha: float) -> float:
    """Σ log p(turn) / L^α of the L turns on the way.

    >>> priority(-4.0, 4, 0.5), priority(-4.0, 4, 0.0), priority(-4.0, 4, 1.0)
    (-2.0, -4.0, -1.0)
    """
    return logprob / max(1, length) ** alpha


@component("search", "bfs_prover", paper="2502.03438", forks=True)
async def bfs_prover(searcher: Searcher, *, children: int = 4, alpha: float = 0.5) -> None:
    """Always goes on from the open state whose turns were likeliest, by Σ log p / L^α; of all ends the likeliest is kept.

    Best-first search of BFS-Prover: with α > 0 deep ways are not held back by their length. There the first proof is the
    result, as its checker says; here no end is known to be right, and the priority decides among ends, too. It needs a
    policy that tells log-probabilities, and no scorer. The planner of subgoals and the shared cache of its second version,
    and what both do in training, are left out.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("bfs_prover:children=2", budget=60)
    >>> e.metrics["search_forked"] > 0
    True
    """

    def worth(node: SearchNode) -> float:
        return priority(node.logprob(), len(node.turns), alpha)

    best, waiting = searcher.first, [searcher.root]
    worth(best)  # a policy without log-probabilities is refused at once
    while waiting:
        at = max(waiting, key=worth)
        waiting.remove(at)
        if searcher.must_finish(at, children):
            waiting = []
            end = await searcher.play_on(at)
            found = [end] if end is not None else []
        else:
            found = await searcher.expand(at, children)
        for node in found:
            if not node.over:
                waiting.append(node)
            elif worth(node) > worth(best):
                best = node
                searcher.keep(best)
