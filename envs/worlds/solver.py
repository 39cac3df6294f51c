"""A*: the shortest plan, where no rule gives one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Act = TypeVar("Act")


def shortest_plan(
    start: Node,
    successors: Callable[[Node], Iterable[tuple[Act, Node]]],
    estimate: Callable[[Node], float],
    *,
    most: int = 500_000,
) -> list[tuple[Node, Act]] | None:
    """A shortest way to a node whose ``estimate`` is 0, as (node, act) pairs; None where there is none.

    ``estimate`` is at most the true distance, 0 exactly at goals and infinite where no goal can be reached.
    At most so many nodes are looked at; beyond them the answer is None too.

    >>> shortest_plan(0, lambda n: [("+1", n + 1), ("*2", n * 2)], lambda n: float(n != 6))
    [(0, '+1'), (1, '+1'), (2, '+1'), (3, '*2')]
    """
    came: dict[Node, tuple[Node, Act] | None] = {start: None}
    cost = {start: 0}
    queue = [(estimate(start), 0, 0, start)]  # (bound, order, spent, node)
    pushed = 0
    while queue and len(cost) < most:
        bound, _, spent, node = heapq.heappop(queue)
        if bound == float("inf"):
            return None
        if spent > cost[node]:
            continue  # reached again by a shorter way since
        if estimate(node) == 0:
            return _unwind(came, node)
        for act, after in successors(node):
            step = cost[node] + 1
            if step < cost.get(after, step + 1):
                cost[after], came[after] = step, (node, act)
                pushed -= 1  # the newest of equals first: depth before breadth
                heapq.heappush(queue, (step + estimate(after), pushed, step, after))
    return None


def _unwind(came: dict[Node, tuple[Node, Act] | None], node: Node) -> list[tuple[Node, Act]]:
    plan: list[tuple[Node, Act]] = []
    last = came[node]
    while last is not None:
        plan.append(last)
        last = came[last[0]]
    return plan[::-1]
