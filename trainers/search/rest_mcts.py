"""ReST-RL: tree search with a value model at test time (VM-MCTS)."""

from __future__ import annotations

import math

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher
from turnwise.trainers.search.tree import TreeNode, grow


def uct(value: float, above: int, visits: int, c: float = 0.2) -> float:
    """V + c · √((1 + ln N_parent) / (0.1 + N)).

    >>> round(uct(0.6, 10, 3), 4), round(uct(0.5, 10, 1), 4)
    (0.8064, 0.8465)
    """
    return value + c * math.sqrt((1 + math.log(max(1, above))) / (0.1 + visits))


@component("search", "rest_mcts", paper="2508.19576", needs=("scorer",), forks=True)
async def rest_mcts(searcher: Searcher, *, children: int = 5, keep: int = 3, c: float = 0.2) -> None:
    """Grows a tree of turns by V + 0.2·√((1 + ln N_parent)/(0.1 + N)); of five samples at a state the best three stay.

    VM-MCTS of ReST-RL: V is the mean of the values below a node, by the scorer. Its half in training (tasks that begin in the
    middle of the best episodes) is another part's matter.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("rest_mcts:children=3", budget=300, scorer="fork:1")
    >>> e.metrics["search_nodes"] > 2
    True
    """

    def choose(above: TreeNode, child: TreeNode) -> float:
        return uct(child.mean, above.visits, child.visits, c)

    await grow(searcher, choose, children=children, keep=keep)
