"""Trees of turns that grow towards where it is worth it: a state is chosen, and further rollouts go on from it to their ends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from turnwise.agents.core import Episode
from turnwise.agents.rollout import Request, fork
from turnwise.errors import RecipeError
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.tree_node import TreeNode
from turnwise.trainers.strategy.runner import Plan, RolloutRunner, RunnerResult

GIVES = ("edge", "tree_value")
"""The same number for turns that are one and the same sample, 0 for those that one episode has; and of the state before a turn the mean of ends."""


class Came(NamedTuple):
    """A state: its number in the tree, the rollout that came to it first, and after how many turns."""

    number: int
    played: RunnerResult | None = None
    depth: int = 0


Node: TypeAlias = TreeNode[Came]
Choose: TypeAlias = Callable[[Node, Node], float]
"""From a state and one after it to a number; the one with the largest is gone on from."""


@dataclass
class Grown:
    """The tree of a group: its root, and the rollouts with the states that they came by."""

    requests: Sequence[Request]
    root: Node = field(default_factory=lambda: TreeNode(Came(0)))
    leaves: list[tuple[Episode, list[Node]]] = field(default_factory=list[tuple[Episode, list[Node]]])
    states: int = 0

    def add(
        self, start: Node, played: RunnerResult, value: Callable[[Episode], float], children: int
    ) -> None:
        """Take up a rollout from a state on."""
        episode, at, path = played.episode, start, trail(start)
        if episode.outcome.counts:
            for turn in episode.trajectory.turns[start.node.depth :]:
                self.states += 1
                said = turn.reply.logprobs
                prior = math.exp(sum(said) / len(said)) if said else 1.0 / children
                child = TreeNode(Came(self.states, played, at.node.depth + 1), at, prior)
                at.children.append(child)
                path.append(child)
                at = child
            at.closed = True
            at.count(value(episode))
        self.leaves.append((episode, path))


def trail(node: Node) -> list[Node]:
    """The states after the beginning on the way to one, itself the last.

    >>> root = TreeNode(Came(0))
    >>> [one.node.number for one in trail(TreeNode(Came(2), TreeNode(Came(1), root)))]
    [1, 2]
    """
    return [] if node.parent is None else [*trail(node.parent), node]


def is_open(node: Node, children: int) -> bool:
    """Say whether something is left to try at a state or after it.

    >>> end = TreeNode(Came(1), closed=True)
    >>> [is_open(TreeNode(Came(0), children=[end] * n), 2) for n in (0, 1, 2)]
    [True, True, False]
    """
    if node.closed:
        return False
    return len(node.children) < children or any(is_open(child, children) for child in node.children)


def chosen(root: Node, children: int, choose: Choose) -> Node | None:
    """The state that is gone on from: the first on the way of the largest numbers that was not gone on from in all ways yet."""
    at = root
    while len(at.children) >= children:
        ways = [child for child in at.children if is_open(child, children)]
        if not ways:
            return None
        at = max(ways, key=lambda child, above=at: choose(above, child))
    return at if not at.closed else None


async def grow(
    runner: RolloutRunner, plan: Plan, choose: Choose, value: Callable[[Episode], float], children: int
) -> list[Grown]:
    """A tree for each group, of as many rollouts as it has requests, or fewer where nothing is left to try.

    The first ``children`` begin where the group's requests do; then a state is chosen and gone on from in what other ways are
    left. The turns of rollouts are states, too.
    """
    forest = [Grown(requests) for requests in plan]
    while asked := [(tree, at, ways) for tree in forest for at, ways in _wanted(tree, children, choose)]:
        requests = [one for tree, at, ways in asked for one in _requests(tree, at, ways)]
        played = iter(await runner(requests, branch_points=True))
        for tree, at, ways in asked:
            before = len(at.children)
            for _ in range(ways):
                tree.add(at, next(played), value, children)
            if len(at.children) == before:  # none came through
                at.closed = True
    return forest


def _wanted(tree: Grown, children: int, choose: Choose) -> list[tuple[Node, int]]:
    """Where a tree is gone on with, and in how many ways; nothing where it is grown."""
    left = len(tree.requests) - len(tree.leaves)
    while left > 0 and (at := chosen(tree.root, children, choose)) is not None:
        came = at.node
        if came.played is None or came.played.branch_point(came.depth) is not None:
            return [(at, min(left, children - len(at.children)))]
        at.closed = True
    return []


def _requests(tree: Grown, at: Node, ways: int) -> list[Request]:
    if at.node.played is None:
        return list(tree.requests[len(tree.leaves) : len(tree.leaves) + ways])
    point = at.node.played.branch_point(at.node.depth)
    assert point is not None, "_wanted asks only where there is one"
    return [fork(point, len(at.children) + i) for i in range(ways)]


def labelled(tree: Grown, label: Callable[[float], float] = float) -> Group:
    """The episodes of a tree, with :data:`GIVES` beside each turn; ``label`` makes of a state's mean what a value is fitted to."""
    counted = Counter(
        node.node.number for episode, path in tree.leaves if episode.outcome.counts for node in path
    )
    return [
        with_signals(
            episode,
            [
                {
                    "edge": float(node.node.number if counted[node.node.number] > 1 else 0),
                    "tree_value": label(before.mean),
                }
                for before, node in zip([tree.root, *path], path, strict=False)
            ],
        )
        if episode.outcome.counts
        else episode
        for episode, path in tree.leaves
    ]


def check_ways(strategy: str, plan: Plan, children: int) -> None:
    """Refuse what grows no tree.

    Raises:
        RecipeError: a state is gone on from in one way, or a group is too small for a second one.
    """
    if children < 2:
        raise RecipeError(f"strategy {strategy!r}: children={children} is no tree.", "Give 2 or more (4).")
    if any(len(group) <= children for group in plan):
        raise RecipeError(
            f"strategy {strategy!r}: all rollouts of a group begin at its start, where there are no more than children={children}.",
            f"Set rollout.group_size to {children + 1} or more; R rounds need children + (R − 1)·(children − 1).",
        )
