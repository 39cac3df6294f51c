"""A search tree whose nodes are valued as they are made; searches differ in how they go down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from turnwise.trainers.search.core import Searcher, SearchNode


@dataclass(eq=False)
class TreeNode:
    """A node of a search tree.

    Attributes:
        node: the state.
        parent, children: in the tree.
        prior: of being chosen, by the policy.
        visits, total: how many values were counted here, and their sum.
        closed: nothing below is left to try.
    """

    node: SearchNode
    parent: TreeNode | None = None
    prior: float = 1.0
    children: list[TreeNode] = field(default_factory=list["TreeNode"])
    visits: int = 0
    total: float = 0.0
    closed: bool = False

    @property
    def mean(self) -> float:
        """The mean of the values that were counted here; 0 if none was."""
        return self.total / self.visits if self.visits else 0.0

    def count(self, value: float) -> None:
        """Count a value here and in all states before."""
        at: TreeNode | None = self
        while at is not None:
            at.visits += 1
            at.total += value
            at = at.parent

    def close(self) -> None:
        """Close it, and what has only closed children before it."""
        self.closed = True
        at = self.parent
        while at is not None and all(child.closed for child in at.children):
            at.closed = True
            at = at.parent


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
