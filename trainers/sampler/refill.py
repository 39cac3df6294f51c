"""Refill: tasks are drawn, a round at a time, until enough of their groups are informative.

The number of groups N is then random, and says something of them: a plain mean over what was played leans to lucky
rounds. What follows is exact.

*Inverse sampling.* Let the tasks of an update be exchangeable (no order of them more likely than another), f_i what group
i adds to the update, and call k of the N groups that were played informative, by whatever predicate. What the *first*
group adds has the right mean, E f_1 = μ, since it is always played, however long the update gets. Its mean over all
orders of the same groups that would have stopped at the same place (Rao–Blackwell) has this mean too, and less noise::

    μ̂ = p·(mean of f over informative groups) + (1 − p)·(mean of f over the others),
    p = share of these orders that begin with an informative group.

With rounds of one task that stop at the B-th informative group, an order ends with an informative group and holds B − 1
more in N − 1 places, C(N−1, B−1) orders, of which C(N−2, B−2) begin with one: p = (B−1)/(N−1), so that each informative
group weighs (B−1)/(B(N−1)) (Haldane 1945). Where the cap M is reached before, every order of k in M is possible, and p =
k/M. For rounds of more tasks the orders are counted (Girshick, Mosteller and Savage 1946), and nothing that was played is
thrown away. One round of any size is the plain mean.

Where uninformative groups add nothing, this is the update of a fixed number of groups; but nothing rests on that: μ̂ is
unbiased whatever they add. Playing *one* task again until its group is informative has no such estimate (it weighs hard
tasks as much as easy ones), and is not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import zip_longest
from math import comb

from turnwise.trainers.core import Group


def is_informative(group: Group) -> bool:
    """Say whether the members of a group differ in some turn's reward: what was paid, or when it was.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> is_informative([episode([0, 1]), episode([0, 1, 0])]), is_informative([episode([0, 1]), episode([1])])
    (False, True)
    """
    rewards = [[turn.reward for turn in member.trajectory.turns] for member in group]
    return any(len(set(paid)) > 1 for paid in zip_longest(*rewards, fillvalue=0.0))


def informative_share(rounds: Sequence[int], informative: int, enough: int) -> Fraction:
    """p: the share of orders that begin with an informative group, of all that stop where this update did.

    >>> informative_share([1] * 7, informative=3, enough=3)  # (3 − 1) / (7 − 1)
    Fraction(1, 3)
    >>> informative_share([1] * 7, informative=2, enough=3)  # the cap: 2 of 7
    Fraction(2, 7)
    >>> informative_share([8], informative=5, enough=3)  # one round
    Fraction(5, 8)

    Args:
        rounds: how many groups were played in each round.
        informative: how many of all of them are informative.
        enough: the update ended after the round in which this many were reached, or at the cap.
    """
    sizes = [size for size in rounds if size]
    first, *_ = sizes
    all_orders = _orders({0: 1}, sizes, enough).get(informative, 0)
    begun = {1 + j: comb(first - 1, j) for j in range(first)}
    if len(sizes) > 1:
        begun = _orders({k: n for k, n in begun.items() if k < enough}, sizes[1:], enough)
    return Fraction(begun.get(informative, 0), all_orders)


def _orders(ways: dict[int, int], rounds: Sequence[int], enough: int) -> dict[int, int]:
    """By how many informative groups: the orders of further rounds none of which but the last ended the update."""
    for number, size in enumerate(rounds):
        after: dict[int, int] = {}
        for k, n in ways.items():
            for j in range(size + 1):
                after[k + j] = after.get(k + j, 0) + n * comb(size, j)
        last = number == len(rounds) - 1
        ways = after if last else {k: n for k, n in after.items() if k < enough}
    return ways


def refill_weights(rounds: Sequence[Sequence[bool]], enough: int) -> list[float]:
    """The weight of each group, in order, on a mean over all groups that were played; 1 each after a single round.

    >>> refill_weights([[True, False, False, True]], enough=2)
    [1.0, 1.0, 1.0, 1.0]
    >>> refill_weights([[True], [False], [True]], enough=2)  # 3·p/2 and 3·(1 − p)/1 with p = 1/2
    [0.75, 1.5, 0.75]

    Args:
        rounds: of each round, which of its groups are informative.
        enough: the update ended after the round in which this many were reached, or at the cap.
    """
    flags = [flag for played in rounds for flag in played]
    total, informative = len(flags), sum(flags)
    if not flags:
        return []
    share = informative_share([len(played) for played in rounds], informative, enough)
    of_them = total * share / informative if informative else Fraction(0)
    of_others = total * (1 - share) / (total - informative) if total > informative else Fraction(0)
    return [float(of_them if flag else of_others) for flag in flags]


def size_weights(episodes: Sequence[int], weights: Sequence[float]) -> list[float]:
    """The weight of each trajectory of a group, so that groups weigh as asked whatever their numbers of episodes.

    Reducers divide by the trajectories of all groups; with groups of one size this is the group's own weight.

    >>> size_weights([4, 4], [1.0, 1.0]), size_weights([2, 6], [1.0, 1.0])
    ([1.0, 1.0], [2.0, 0.6666666666666666])
    """
    mean = sum(episodes) / max(1, len(episodes))
    return [weight * (mean / size) for weight, size in zip(weights, episodes, strict=True)]
