"""PROPA: a tree of turns that grows by upper confidence bounds, whose labels are boosted."""

from __future__ import annotations

import math

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.strategy.growing import GIVES, Node, check_ways, grow, labelled
from turnwise.trainers.strategy.runner import Plan, RolloutRunner


def ucb(mean: float, above: int, visits: int, c: float = 1.0) -> float:
    """V/n + c · √(2 ln N_parent / n); ∞ where nothing was counted yet.

    >>> round(ucb(0.75, 10, 4), 4), round(ucb(0.5, 10, 2), 4), ucb(0.0, 10, 0)
    (1.823, 2.0174, inf)
    """
    return mean + c * math.sqrt(2 * math.log(max(1, above)) / visits) if visits else math.inf


def boosted(x: float) -> float:
    """ln(1 + 10x)/ln 11: a state that sometimes leads to success has a label nearer to 1 than to 0.

    >>> [round(boosted(x), 4) for x in (0, 0.1, 0.25, 0.5, 0.75, 1)]
    [0.0, 0.2891, 0.5224, 0.7472, 0.8925, 1.0]
    """
    return math.log1p(10 * x) / math.log(11)


def _solved(episode: Episode) -> float:
    return float(episode.success)


@component("strategy", "propa", gives=GIVES, whole_groups=True, shared_turns=True)
async def propa(runner: RolloutRunner, plan: Plan, *, children: int = 4, c: float = 1.0) -> list[Group]:
    """Grows a tree for each group: the state with the largest V/n + c·√(2 ln N_parent/n) is gone on from, and ends count 1 or 0.

    PROPA: 4 children, 10 rounds. Gives ``tree_value``, the boosted label ln(1 + 10x)/ln 11 of the state before each turn, x the share of rollouts through it that
    solved the task, to which a verifier is fitted (`signals: [{name: value, form: verifier, fit: tree_value}]`), and ``edge``, the same number for turns that are one and the same
    sample, 0 for those that only one episode has, by which the credit rule `propa` compares what was tried in one state. A
    group of n has n rollouts: ``children`` from the start, then rounds of as many other ways as are left at the chosen state; 31 are ten rounds of 4 children. Ours:
    each child has a rollout of its own, so that none is without visits, and it is sampled and goes to the end, in place of 8 greedy turns.

    >>> from turnwise.trainers.strategy.runner import try_out
    >>> groups, cost = try_out(propa, "mix:gold=1,random=1", "shop/quick", groups=1, size=6)
    >>> first = {e.trajectory.turns[0].signals["tree_value"] for e in groups[0]}
    >>> len(groups[0]), first == {boosted(sum(e.success for e in groups[0]) / 6)}
    (6, True)

    Raises:
        RecipeError: a group is no larger than ``children``, or these are fewer than two.
    """
    check_ways("propa", plan, children)

    def choose(above: Node, child: Node) -> float:
        return ucb(child.mean, above.visits, child.visits, c)

    return [labelled(tree, boosted) for tree in await grow(runner, plan, choose, _solved, children)]
