"""Vine: from every state that was met, a few more rollouts that only measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain as concatenate
from statistics import fmean, stdev
from typing import NamedTuple, TypeAlias

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.rollout import Moment, fork
from turnwise.trainers.core import Group
from turnwise.trainers.play import Plan, Played, Player
from turnwise.trainers.registry import component


@component("strategy", "vine", paper="2410.01679", gives=("fork_value", "fork_error"), only_measures=True)
async def vine(play: Player, plan: Plan, *, forks: int = 4) -> list[Group]:
    """Chains, and ``forks`` fresh rollouts from the state before each of their turns.

    Gives ``fork_value``, V̂(s_k) = the mean return from turn k on of the forks, and ``fork_error``, its standard
    error (0 for a single fork). Kazemnejad et al. 2024 with step = turn; their K is 9. A fork starts with its
    parent's turns and tokens, so a prefix-caching engine computes them once, and has chance of its own in
    the policy and in the environment. All episodes of a group begin in one state, which is measured once.

    The forks are not trained on; their steps and tokens are in the metrics (``fork_steps``, ``fork_tokens``).
    Where no fork from a state came through, its episode counts as an infrastructure fault.

    >>> from turnwise.trainers.play import try_out
    >>> groups, cost = try_out(vine, "scripted:gold", "shop/quick", groups=1, size=2)
    >>> [turn.signals["fork_value"] for turn in groups[0][0].trajectory.turns] == [1.0] * 4
    True
    >>> cost.steps - cost.fork_steps, cost.fork_steps  # two of 4 turns; 4 forks of 4 turns, 8 of 3, 2, 1
    (8, 64)
    """
    trunk = await play(list(concatenate.from_iterable(plan)), moments=True)
    index = iter(trunk)
    grown = [[next(index) for _ in group] for group in plan]
    values = await fork_values(play, grown, forks)
    return [[_measured(p, group[0], values) for p in group] for group in grown]


class Value(NamedTuple):
    """A mean return and its standard error."""

    mean: float
    error: float


Values: TypeAlias = Mapping[tuple[str, int, int], Value | None]
"""By task, seed and turn of a moment. None: no fork came through."""


async def fork_values(play: Player, groups: Sequence[Sequence[Played]], forks: int, *names: str) -> Values:
    """The value of every state that was met before a turn; ``names`` give other forks than without them."""
    met = (moment for group in groups for moment in _moments(group))
    asked = list({_place(moment): moment for moment in met}.values())  # trees share moments
    played = iter(await play([fork(moment, *names, i) for moment in asked for i in range(forks)]))
    return {_place(moment): _value(play, moment, [next(played) for _ in range(forks)]) for moment in asked}


def value_of(values: Values, first: Played, played: Played, turn: int) -> Value | None:
    """The value of the state before a turn; at the beginning that of the group's ``first`` episode."""
    moment = (played if turn else first).moment(turn)
    return values.get(_place(moment)) if moment else None


def _moments(group: Sequence[Played]) -> list[Moment]:
    """Where to fork: before every turn that was played; the common beginning once."""
    return [
        moment
        for number, played in enumerate(group)
        for moment in played.moments[: len(played.episode.trajectory.turns)]
        if number == 0 or moment.turns
    ]


def _place(moment: Moment) -> tuple[str, int, int]:
    return moment.task.id, moment.seed, len(moment.turns)


def _value(play: Player, moment: Moment, forks: Sequence[Played]) -> Value | None:
    """Mean return from the moment on and its standard error; None where every fork failed."""
    whole = [played.episode for played in forks if played.episode.outcome.counts]
    rewarded = play.reward(whole) if whole else []
    returns = [sum(t.reward for t in e.trajectory.turns[len(moment.turns) :]) for e in rewarded]
    if not returns:
        return None
    return Value(fmean(returns), stdev(returns) / len(returns) ** 0.5 if len(returns) > 1 else 0.0)


def _measured(played: Played, first: Played, values: Values) -> Episode:
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
