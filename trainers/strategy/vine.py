"""Vine: from every state that was met, a few more rollouts that only measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain as concatenate
from statistics import fmean, stdev

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
    asked = [moments for group in grown for moments in _moments(group)]
    played = iter(await play([fork(moment, i) for moment in asked for i in range(forks)]))
    values = {_place(moment): _value(play, moment, [next(played) for _ in range(forks)]) for moment in asked}
    return [[_measured(p, group[0], values) for p in group] for group in grown]


Place = tuple[str, int, int]
Value = tuple[float, float] | None


def _moments(group: Sequence[Played]) -> list[Moment]:
    """Where to fork: before every turn that was played; the common beginning once."""
    return [
        moment
        for number, played in enumerate(group)
        for moment in played.moments[: len(played.episode.trajectory.turns)]
        if number == 0 or moment.turns
    ]


def _place(moment: Moment) -> Place:
    return moment.task.id, moment.seed, len(moment.turns)


def _value(play: Player, moment: Moment, forks: Sequence[Played]) -> Value:
    """Mean return from the moment on and its standard error; None where every fork failed."""
    whole = [played.episode for played in forks if played.episode.outcome.counts]
    rewarded = play.reward(whole) if whole else []
    returns = [sum(t.reward for t in e.trajectory.turns[len(moment.turns) :]) for e in rewarded]
    if not returns:
        return None
    return fmean(returns), stdev(returns) / len(returns) ** 0.5 if len(returns) > 1 else 0.0


def _measured(played: Played, first: Played, values: dict[Place, Value]) -> Episode:
    """The episode with what its forks measured beside each turn."""
    episode = played.episode
    if not episode.outcome.counts:
        return episode
    turns = list(episode.trajectory.turns)
    for k, turn in enumerate(turns):
        seed = episode.seed if k else first.episode.seed
        found = values.get((episode.task.id, seed, k))
        if found is None:
            return replace(episode, outcome=Outcome.INFRA_ERROR, error=f"no fork of turn {k} came through")
        signals = {**turn.signals, "fork_value": found[0], "fork_error": found[1]}
        turns[k] = replace(turn, signals=signals)
    trajectory = replace(episode.trajectory, turns=tuple(turns))
    return replace(episode, trajectories={trajectory.agent: trajectory})
