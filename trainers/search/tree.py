"""A search tree whose nodes are valued as they are made; searches differ in how they go down."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from turnwise.trainers.kit.tree_node import TreeNode as Node
from turnwise.trainers.search.core import Searcher, SearchNode

TreeNode: TypeAlias = Node[SearchNode]
Choose: TypeAlias = Callable[[TreeNode, TreeNode], float]
"""From a parent and its child to a number; the child with the largest is gone on from."""


async def grow(
    searcher: Searcher,
    choose: Choose,
    *,
    children: int,
    keep: int | None = None,
    prior: Callable[[SearchNode, int], float] | None = None,
) -> None:
    """Go down by ``choose`` to a leaf, try next turns there, value each by the scorer, and count the values up to the root.

    Of the children of a node the best ``keep`` by the scorer stay. Ends are offered as results. Where what is left
    suffices only to play on as plain play did, the state that ``_promising`` names is played on.
    """
    root = TreeNode(searcher.root)
    await searcher.offer(searcher.first)
    while not root.closed:
        leaf = root
        while leaf.children:
            above = leaf
            leaf = max((c for c in above.children if not c.closed), key=lambda child: choose(above, child))
        if searcher.must_finish(_promising(root).node, children):
            break
        await _open(searcher, leaf, children, keep, prior)
    best = _promising(root).node
    if not best.over:
        end = await searcher.play_on(best)
        if end is not None:
            await searcher.offer(end)


async def _open(
    searcher: Searcher,
    leaf: TreeNode,
    children: int,
    keep: int | None,
    prior: Callable[[SearchNode, int], float] | None,
) -> None:
    found = await searcher.expand(leaf.node, children)
    values = await searcher.score(found) if found else []
    best = sorted(zip(values, found, strict=True), key=lambda one: -one[0])[:keep]
    for value, node in best:
        child = TreeNode(node, leaf, prior(node, len(found)) if prior else 1.0)
        leaf.children.append(child)
        child.count(value)
    if not leaf.children:
        leaf.close()
    for child in leaf.children:
        if child.node.over:
            await searcher.offer(child.node)
            child.close()


def _promising(root: TreeNode) -> TreeNode:
    """The state to which the best means lead."""
    at = root
    while at.children:
        at = max(at.children, key=lambda child: child.mean)
    return at
