"""HC-RLHF: harm is charged at a rate that rises while a pessimistic mean of it is above what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

import torch

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.distributions import t_quantile
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup


@component(
    "signal", "hc_rlhf", paper="2506.08266", gives=("hc_rlhf",), hears=("cost",), reads=("outcomes", "memory"), learns=True,
)  # fmt: skip
class HighConfidenceSafety(Signal):
    """−λ·c on every turn, c its cost; after each update λ grows by ``step``·(u − ``limit``), u a pessimistic mean cost, and is never below 0.

    HC-RLHF (Chittepu et al. 2025): u = mean + (``of_batch``·t(1 − δ, n − 1)/√n + ``of_test``·t(1 − δ, m − 1)/√m)·sd, with n the costs of the batch and
    m = ``held_out`` those of the test that the policy is to pass in the end, `turnwise audit log PATH --measure safety --set bound=t`; δ = ``delta``. So the
    policy is trained to be safe enough that the test will say so, too. `reward: {name: from_signal, signal: hc_rlhf}` pays it beside what the environment
    pays, r − λ·c. The cost of a turn is by ``cost``: ``bad_action`` (1 on the first turn whose act the environment refused, as the test counts an
    episode once), ``failure`` (1 on the last turn of an episode that did not solve its task), what a component of what the environment paid took
    away (r has it once already), or else a signal of the turn, such as a judge's; 0 where there is none. The cost of an episode is their sum, and the episodes of a
    group are one of the n, by their mean (ours). λ begins at ``first`` (ours), and stays where fewer than two groups were played. The limit of 0 is theirs, for
    costs that are below 0 where an answer is safe; with costs of 0 and 1, set what is allowed, such as 0.05, or λ never falls.
    Left out: a cost model that is trained on preferences.

    Figures: ``hc_rlhf_cost``, ``hc_rlhf_at_most`` (u) and ``hc_rlhf_rate``, the λ that was charged.

    Worked by hand from the book: ten costs, a test of 100, and the share of the deviation.

    >>> costs = [-1, -.5, -.8, .2, -.9, -.4, -.7, -.3, -.6, -1]
    >>> at_most = pessimistic(costs, 100, .1)
    >>> round(at_most, 4), round((at_most - mean(costs)) / stdev(costs), 4)
    (-0.3898, 0.5664)
    >>> round(pessimistic(costs, 100, .1, of_test=0.0), 4)  # the bound of row 256's test
    -0.4377

    Raises:
        RecipeError: a rate, a step or a share is below 0, δ is no chance, or the test has one episode.
    """

    def __init__(
        self,
        setup: SignalSetup,
        *,
        cost: str = "bad_action",
        limit: float = 0.0,
        delta: float = 0.1,
        held_out: int = 100,
        of_batch: float = 1.0,
        of_test: float = 1.0,
        first: float = 1.0,
        step: float = 0.1,
    ) -> None:
        not_below_zero("signal 'hc_rlhf'", of_batch=of_batch, of_test=of_test, first=first, step=step)
        if not 0 < delta < 1 or held_out < 2:
            raise RecipeError(
                f"signal 'hc_rlhf': delta={delta:g}, held_out={held_out}.",
                "Set delta between 0 and 1 (0.1), and a test of 2 or more (100).",
            )
        self.cost, self.limit, self.delta, self.held_out = cost, limit, delta, held_out
        self.of_batch, self.of_test, self.step, self.rate = of_batch, of_test, step, first

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        told_BK, b = torch.zeros(batch.turns.mask_BK.shape), 0
        by_group = list[float]()
        for group in groups:
            costs = [self._costs(one) for one in group]
            for turns in costs:
                told_BK[b, : len(turns)] = -self.rate * torch.tensor(turns)
                b += 1
            counted = [sum(turns) for one, turns in zip(group, costs, strict=True) if one.outcome.counts]
            by_group += [mean(counted)] if counted else []
        if len(by_group) < 2:
            return Measured({"hc_rlhf": told_BK})
        at_most = pessimistic(
            by_group, self.held_out, self.delta, of_batch=self.of_batch, of_test=self.of_test
        )
        metrics = {
            "hc_rlhf_cost": mean(by_group),
            "hc_rlhf_at_most": at_most,
            "hc_rlhf_rate": self.rate,
        }
        self.rate = max(0.0, self.rate + self.step * (at_most - self.limit))
        return Measured({"hc_rlhf": told_BK}, metrics=metrics)

    def _costs(self, episode: Episode) -> list[float]:
        turns = episode.trajectory.turns
        if self.cost == "bad_action":
            first = next((k for k, turn in enumerate(turns) if turn.bad_action), None)
            return [float(k == first) for k in range(len(turns))]
        if self.cost == "failure":
            return [float(turn is turns[-1] and not episode.success) for turn in turns]
        return [
            -turn.rewards[self.cost] if self.cost in turn.rewards else turn.signals.get(self.cost, 0.0)
            for turn in turns
        ]

    def state(self) -> PartState:
        return PartState({"rate": self.rate})

    def restore(self, state: PartState) -> None:
        self.rate = float(state.numbers["rate"])


def pessimistic(
    costs: Sequence[float], held_out: int, delta: float, *, of_batch: float = 1.0, of_test: float = 1.0
) -> float:
    """An upper bound of the mean of these costs, so that a test of so many others is passed."""
    n = len(costs)
    share = of_batch * t_quantile(1 - delta, n - 1) / sqrt(n)
    share += of_test * t_quantile(1 - delta, held_out - 1) / sqrt(held_out)
    return mean(costs) + share * stdev(costs)
