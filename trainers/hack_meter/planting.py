"""Planting: which planted tasks stand beside the episodes of an update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.rollout import Request
from turnwise.envs.planted import PlantedKind
from turnwise.envs.registry import planted_suite, suite_task
from turnwise.tasks.core import Split, derive_rng
from turnwise.trainers.hack_meter.meter import MeterRule
from turnwise.trainers.sampler.mixture import Mixture

PLANTED = -1
"""Stands in the keys of planted episodes where the number of a group stands in others."""


class PlantedRequest(NamedTuple):
    """A planted episode to be played: what its task is planted as, and from a task of which suite it is made."""

    kind: PlantedKind
    suite: str
    request: Request


def planted_requests(
    rule: MeterRule, mixture: Mixture, seed: int, update: int, episodes: int
) -> Sequence[PlantedRequest]:
    """Return the planted episodes of an update (counted from 0) that plays so many others; each is of a task of its own.

    >>> rule = MeterRule(planted=0.05)
    >>> plans = [planted_requests(rule, Mixture({"shop/quick": 1.0}, 0), 0, update, 32) for update in range(3)]
    >>> [[one.kind for one in plan] for plan in plans]
    [['impossible'], ['canary', 'impossible'], ['canary']]
    """
    first, end = (math.floor(rule.planted * episodes * n + 1e-9) for n in (update, update + 1))
    found: list[PlantedRequest] = []
    for number in range(first, end):
        kind, suite = rule.kinds[number % len(rule.kinds)], mixture.suite_of(number)
        task = suite_task(planted_suite(suite, kind), Split.TRAIN, number)
        chance = derive_rng("planted", seed, update, number).getrandbits(62)
        request = Request(task, chance, key=(seed, update, PLANTED, number))
        found.append(PlantedRequest(kind, suite.name, request))
    return found
