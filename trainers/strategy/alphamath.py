"""AlphaMath: a tree of turns that grows by PUCT, whose ends count ±1."""

from __future__ import annotations

import math

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.strategy.growing import GIVES, Node, check_ways, grow, labelled
from turnwise.trainers.strategy.runner import Plan, RolloutRunner


def puct(value: float, prior: float, above: int, visits: int, c: float = 1.5) -> float:
    """Q + c · prior · √N_parent / (1 + N).

    >>> round(puct(0.4, 0.5, 10, 3), 4)
    0.9929
    """
    return value + c * prior * math.sqrt(above) / (1 + visits)


@component(
    "strategy",
    "alphamath",
    paper="2405.03553",
    gives=GIVES,
    whole_groups=True,
    shared_turns=True,
)
async def alphamath(
    runner: RolloutRunner, plan: Plan, *, children: int = 4, c: float = 1.5, wrong: float = -1.0
) -> list[Group]:
    """Grows a tree for each group: the state with the largest Q + c·prior·√N_parent/(1 + N) is gone on from, and ends count 1 or ``wrong``.

    AlphaMath (Chen et al. 2024): the prior is the exponential of the mean log-probability of a turn's tokens (1/``children`` where the policy tells
    none), Q the mean of what was counted below, and an end counts 1 if it is right, −1 if it is wrong or too long; with ``wrong: 0`` they count as
    rewards do, on which ReST-RL's value of its VM-MCTS is trained. Gives
    ``tree_value``, the mean in the state before each turn, to which a value is fitted (`signals: [{name: value, fit: tree_value}]`), and
    ``edge``, the same number for turns that are one and the same sample, 0 for those that only one episode has. A
    group of n has n rollouts: ``children`` from the start, then rounds of as many other ways as are left at the chosen state. Ours: rollouts to the end in place of
    the value of a new state, since a strategy sees no value while it plays; their turns are states of the tree, too.

    >>> from turnwise.trainers.strategy.runner import try_out
    >>> groups, cost = try_out(alphamath, "mix:gold=1,random=1", "shop/quick", groups=1, size=6)
    >>> first = {e.trajectory.turns[0].signals["tree_value"] for e in groups[0]}
    >>> len(groups[0]), first == {sum(1.0 if e.success else -1.0 for e in groups[0]) / 6}
    (6, True)

    Raises:
        RecipeError: a group is no larger than ``children``, or these are fewer than two.
    """
    check_ways("alphamath", plan, children)

    def worth(episode: Episode) -> float:
        return 1.0 if episode.success else wrong

    def choose(above: Node, child: Node) -> float:
        return puct(child.mean, child.prior, above.visits, child.visits, c)

    return [labelled(tree) for tree in await grow(runner, plan, choose, worth, children)]
