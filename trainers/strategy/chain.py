"""Chains: episodes that share nothing but their task."""

from __future__ import annotations

from itertools import chain as concatenate

from turnwise.trainers.core import Group
from turnwise.trainers.play import Plan, Player
from turnwise.trainers.registry import component


@component("strategy", "chain")
async def chain(play: Player, plan: Plan) -> list[Group]:
    """Each episode on its own, from beginning to end.

    >>> from turnwise.trainers.play import try_out
    >>> groups, cost = try_out(chain, "scripted:gold", "shop/quick", groups=2, size=3)
    >>> [len(group) for group in groups], cost.steps == sum(len(e.trajectory.turns) for g in groups for e in g)
    ([3, 3], True)
    """
    played = iter(await play(list(concatenate.from_iterable(plan))))
    return [[next(played).episode for _ in group] for group in plan]
