"""A signal that charges for harm: what each turn costs, an upper bound of the mean by scipy's t, and the rate from update to update."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from typing import Any

from learned import scene
from measured import Part, measured, near, of_turns
from plain import mean, reference, refuses
from scipy import stats

from turnwise.agents.core import Episode, Outcome, Turn
from turnwise.envs.core import EndReason
from turnwise.registry import get_component
from turnwise.trainers.check.small_policy import signal_setup
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import collate

NOTHING: Any = None


def harmed(groups: Sequence[Group], seed: int) -> list[Group]:
    """Acts are refused, harm is taken off or told of, episodes fail or are not played to their end, all by chance; one has no turn."""
    rng = random.Random(f"harm {seed}")

    def turn(was: Turn) -> Turn:
        pay, told = {"outcome": 0.5}, {"other": 1.0}
        if rng.random() < 0.4:
            pay["harm"] = -rng.choice([0.0, 0.5, 2.0])
        if rng.random() < 0.4:
            told["harm"] = rng.choice([0.25, 1.0])
        return dataclasses.replace(was, bad_action=rng.random() < 0.4, rewards=pay, signals=told)

    def one(episode: Episode) -> Episode:
        first = episode.trajectory
        turns = () if rng.random() < 0.1 else tuple(map(turn, first.turns))
        return dataclasses.replace(
            episode,
            trajectories={first.agent: dataclasses.replace(first, turns=turns)},
            end=rng.choice([EndReason.SOLVED, EndReason.FAILED]),
            outcome=rng.choice([Outcome.OK, Outcome.OK, Outcome.INFRA_ERROR]),
        )

    return [[one(episode) for episode in group] for group in groups]


def cost_of(turn: Turn, episode: Episode, cost: str) -> float:
    if cost == "bad_action":
        refused = [id(other) for other in episode.trajectory.turns if other.bad_action]
        return 1.0 if refused[:1] == [id(turn)] else 0.0
    if cost == "failure":
        is_last = sum(1 for other in episode.trajectory.turns if other.reply is turn.reply) == 1 and (
            episode.trajectory.turns[-1].reply is turn.reply
        )
        return 1.0 if is_last and episode.end is not EndReason.SOLVED else 0.0
    if cost in turn.rewards:
        return -turn.rewards[cost]
    return turn.signals.get(cost, 0.0)


@reference(
    "signal", "hc_rlhf", cost=["failure", "harm", "nobody's"], limit=[0.7, -2.0], delta=[0.3, 0.0, 1.0], held_out=[10, 2, 1],
    of_batch=[0.0, 2.0, -1.0], of_test=[0.0, 0.5, -1.0], first=[0.0, 0.3, -0.1], step=[1.0, 0.0, -0.1],
    also=[{"cost": "failure", "limit": 0.5, "step": 3.0, "of_test": 0.0}, {"cost": "harm", "limit": 5.0, "step": 2.0}],
)  # fmt: skip
def hc_rlhf(
    make: Part, cost: str = "bad_action", limit: float = 0.0, delta: float = 0.1, held_out: int = 100, of_batch: float = 1.0,
    of_test: float = 1.0, first: float = 1.0, step: float = 0.1,
) -> None:  # fmt: skip
    """−λ·c, then λ := max(0, λ + step·(mean + (C₁·t/√n + C₂·t/√m)·sd − limit))."""
    setup = dataclasses.replace(signal_setup(get_component("signal", "hc_rlhf")), seed=1)
    if min(of_batch, of_test, first, step) < 0 or delta in (0.0, 1.0) or held_out == 1:
        assert "signal 'hc_rlhf'" in refuses(lambda: make(setup))
        return
    signal, rate, sizes = make(setup), first, set[int]()
    kept: Any = signal.state()
    for update in range(7):
        every = harmed([*scene()[1], *scene()[1]], update)
        lost = [[dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) for one in every[0]]]
        all_lost = [*every, *lost]
        every = [every[:1], every, every[:2], [*every, [*every[0]]], every[:3], every, all_lost][update]
        batch = collate(every)
        if update in (2, 5):
            signal = make(setup)
            signal.restore(kept)
        found = measured(signal, NOTHING, batch, every)
        kept = signal.state()
        played = [one for group in every for one in group]
        costs = {id(one): [cost_of(turn, one, cost) for turn in one.trajectory.turns] for one in played}
        wanted = [[-rate * c for c in costs[id(one)]] for one in played]
        near(of_turns(found.turn["hc_rlhf"], batch), wanted, f"charge {update}", 1e-6)
        counted = [
            [math.fsum(costs[id(one)]) for one in group if one.outcome is Outcome.OK] for group in every
        ]
        of_task = [mean(some) for some in counted if some]
        n = len(of_task)
        sizes.add(min(n, 2))
        if n < 2:
            assert not found.metrics
            continue
        middle = mean(of_task)
        sd = math.sqrt(sum((x - middle) ** 2 for x in of_task) / (n - 1))
        share = of_batch * float(stats.t.ppf(1 - delta, n - 1)) / math.sqrt(n)
        share += of_test * float(stats.t.ppf(1 - delta, held_out - 1)) / math.sqrt(held_out)
        at_most = middle + share * sd
        named = {"hc_rlhf_cost": middle, "hc_rlhf_at_most": at_most, "hc_rlhf_rate": rate}
        assert {*found.metrics} == {*named}
        for name, value in named.items():
            assert math.isclose(found.metrics[name], value, rel_tol=1e-7, abs_tol=1e-9), name
        rate = rate + step * (at_most - limit)
        rate = rate if rate > 0 else 0.0
    assert sizes == {1, 2}
