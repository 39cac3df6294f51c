"""Chains: episodes that share nothing but their task."""

from __future__ import annotations

from itertools import chain as concatenate

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.strategy.runner import Plan, RolloutRunner


@component("strategy", "chain")
async def chain(runner: RolloutRunner, plan: Plan) -> list[Group]:
    """Plays each episode independently, from beginning to end.

    >>> from turnwise.trainers.strategy.runner import try_out
    >>> groups, cost = try_out(chain, "scripted:gold", "shop/quick", groups=2, size=3)
    >>> [len(group) for group in groups], cost.steps == sum(len(e.trajectory.turns) for g in groups for e in g)
    ([3, 3], True)
    """
    played = iter(await runner(list(concatenate.from_iterable(plan))))
    return [[next(played).episode for _ in group] for group in plan]
