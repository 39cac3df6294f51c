"""AlphaMath: Monte-Carlo tree search with a value in place of rollouts."""

from __future__ import annotations

import math

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher, SearchNode
from turnwise.trainers.search.tree import TreeNode, grow
from turnwise.trainers.strategy.alphamath import puct


def prior_of(node: SearchNode, siblings: int) -> float:
    """exp(mean log-probability of the last turn's tokens); where the policy tells none, 1 over the number of siblings (ours).

    >>> from turnwise.trainers.search.toy import node
    >>> round(prior_of(node((0,), [-1.0, -0.5]), 4), 4), prior_of(node((0,), []), 4)
    (0.4724, 0.25)
    """
    told = node.turns[-1].logprobs
    return math.exp(sum(told) / len(told)) if told else 1.0 / siblings


@component("search", "mcts", paper="2405.03553", needs=("scorer",), forks=True)
async def mcts(searcher: Searcher, *, children: int = 4, c: float = 1.5) -> None:
    """Grows a tree of turns by PUCT, valued by the scorer, and keeps the end that the scorer likes best.

    AlphaMath: PUCT = Q + c·prior·√N_parent/(1 + N), Q the mean of the values below, prior the exponential of the mean
    log-probability of a turn's tokens. There ends count ±1 by the checker; a deployment has none, so that ends have the
    scorer's value as other states have. Values are counted as children are made.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("mcts:children=2", budget=300, scorer="fork:1")
    >>> e.metrics["search_nodes"] > 2
    True
    """

    def choose(above: TreeNode, child: TreeNode) -> float:
        return puct(child.mean, child.prior, above.visits, child.visits, c)

    await grow(searcher, choose, children=children, prior=prior_of)
