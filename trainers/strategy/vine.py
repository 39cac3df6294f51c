"""Vine: from every visited state, a few more rollouts that only estimate its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain as concatenate
from statistics import fmean, stdev
from typing import NamedTuple, TypeAlias

from torch import Tensor

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.rollout import BranchPoint, fork
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.strategy.runner import Plan, RolloutRunner, RunnerResult


def _exact(p: ExactProcess) -> dict[str, Tensor]:
    return {"fork_value": p.fork_value_NK}


@component(
    "strategy",
    "vine",
    paper="2410.01679",
    gives=("fork_value", "fork_error"),
    only_measures=True,
    exact=_exact,
)
async def vine(runner: RolloutRunner, plan: Plan, *, forks: int = 4) -> list[Group]:
    """Chains, and ``forks`` fresh rollouts from the state before each of their turns.

    Gives ``fork_value``, V̂(s_k) = the mean return from turn k on of the forks, and ``fork_error``, its standard
    error (0 for a single fork). Kazemnejad et al. 2024 with step = turn; their K is 9. A fork starts with its
    parent's turns and tokens, so a prefix-caching engine computes them once, and has chance of its own in
    the policy and in the environment. All episodes of a group begin in one state, which is measured once.

    The forks are not trained on; their steps and tokens are in the metrics (``fork_steps``, ``fork_tokens``).
    Where no fork from a state came through, its episode counts as an infrastructure fault.

    >>> from turnwise.trainers.strategy.runner import try_out
    >>> groups, cost = try_out(vine, "scripted:gold", "shop/quick", groups=1, size=2)
    >>> [turn.signals["fork_value"] for turn in groups[0][0].trajectory.turns] == [1.0] * 4
    True
    >>> cost.steps - cost.fork_steps, cost.fork_steps  # two of 4 turns; 4 forks of 4 turns, 8 of 3, 2, 1
    (8, 64)
    """
    trunk = await runner(list(concatenate.from_iterable(plan)), branch_points=True)
    index = iter(trunk)
    grown = [[next(index) for _ in group] for group in plan]
    values = await fork_values(runner, grown, forks)
    return [[_measured(p, group[0], values) for p in group] for group in grown]


class Value(NamedTuple):
    """A mean return and its standard error."""

    mean: float
    error: float


Values: TypeAlias = Mapping[tuple[str, int, int], Value | None]
"""By task, seed and turn of a branch point. None: no fork came through."""


async def fork_values(
    runner: RolloutRunner, groups: Sequence[Sequence[RunnerResult]], forks: int, *names: str
) -> Values:
    """The value of every state that was met before a turn; ``names`` give other forks than without them."""
    met = (point for group in groups for point in _branch_points(group))
    asked = list({_place(point): point for point in met}.values())  # trees share branch points
    played = iter(await runner([fork(point, *names, i) for point in asked for i in range(forks)]))
    return {_place(point): _value(runner, point, [next(played) for _ in range(forks)]) for point in asked}


def value_of(values: Values, first: RunnerResult, played: RunnerResult, turn: int) -> Value | None:
    """The value of the state before a turn; at the beginning that of the group's ``first`` episode."""
    point = (played if turn else first).branch_point(turn)
    return values.get(_place(point)) if point else None


def _branch_points(group: Sequence[RunnerResult]) -> list[BranchPoint]:
    """List where to fork: before every turn that was played; the common beginning once."""
    return [
        point
        for number, played in enumerate(group)
        for point in played.branch_points[: len(played.episode.trajectory.turns)]
        if number == 0 or point.turns
    ]


def _place(point: BranchPoint) -> tuple[str, int, int]:
    return point.task.id, point.seed, len(point.turns)


def _value(runner: RolloutRunner, point: BranchPoint, forks: Sequence[RunnerResult]) -> Value | None:
    """Mean return from the branch point on and its standard error; None where every fork failed."""
    whole = [played.episode for played in forks if played.episode.outcome.counts]
    rewarded = runner.reward(whole) if whole else []
    returns = [sum(t.reward for t in e.trajectory.turns[len(point.turns) :]) for e in rewarded]
    if not returns:
        return None
    return Value(fmean(returns), stdev(returns) / len(returns) ** 0.5 if len(returns) > 1 else 0.0)


def _measured(played: RunnerResult, first: RunnerResult, values: Values) -> Episode:
    """The episode with what its forks measured beside each turn."""
    episode = played.episode
    if not episode.outcome.counts:
        return episode
    turns = list(episode.trajectory.turns)
    for k, turn in enumerate(turns):
        found = value_of(values, first, played, k)
        if found is None:
            return replace(episode, outcome=Outcome.INFRA_ERROR, error=f"no fork of turn {k} came through")
        signals = {**turn.signals, "fork_value": found.mean, "fork_error": found.error}
        turns[k] = replace(turn, signals=signals)
    trajectory = replace(episode.trajectory, turns=tuple(turns))
    return replace(episode, trajectories={trajectory.agent: trajectory})
