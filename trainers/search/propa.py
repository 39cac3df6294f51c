"""PROPA: a tree that is grown by upper confidence bounds and rollouts."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher
from turnwise.trainers.search.tree import TreeNode
from turnwise.trainers.strategy.propa import ucb


@component("search", "propa", needs=("scorer",), forks=True)
async def propa(searcher: Searcher, *, children: int = 4, c: float = 1.0) -> None:
    """Grows a tree of turns by UCB; each new state is played on to the end, and what the scorer says of the end is counted.

    PROPA grows its training trees so (4 children, rollouts of up to 8 steps, reward 0 or 1), by UCB = V/n + c·√(2 ln N_p/n).
    Here ends are scored, since at test time nobody is told the reward; rollouts are sampled and go to the end. Its other half
    at test time, search by a trained PRM, is `turn_beam`.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("propa:children=2", budget=300, scorer="oracle")
    >>> e.success
    True
    """
    root = TreeNode(searcher.root)
    await searcher.offer(searcher.first)
    while not root.closed:
        leaf = root
        while leaf.children:
            above = leaf
            open_ones = [child for child in above.children if not child.closed]
            leaf = max(open_ones, key=lambda child: ucb(child.mean, above.visits, child.visits, c))
        if leaf.visits or leaf is root:
            leaf.children = [TreeNode(node, leaf) for node in await searcher.expand(leaf.node, children)]
            if not leaf.children:
                leaf.close()
                continue
            leaf = leaf.children[0]
        end = leaf.node if leaf.node.over else await searcher.play_on(leaf.node)
        if end is None:
            leaf.close()
            continue
        await searcher.offer(end)
        (value,) = await searcher.score([end])
        leaf.count(value)
        if leaf.node.over:
            leaf.close()
