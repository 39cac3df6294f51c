"""GenPRM's labels: a turn is right where fresh rollouts succeed nearly as often after it as before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain as concatenate
from itertools import pairwise

from turnwise.agents.core import Episode, Outcome
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import paid_instead, replace_turns, with_signals
from turnwise.trainers.strategy.runner import Plan, RolloutRunner, RunnerResult
from turnwise.trainers.strategy.vine import Values, fork_values, value_of


@component("strategy", "relative_progress", paper="2504.00891", gives=("wrong",), only_measures=True)
async def relative_progress(
    runner: RolloutRunner, plan: Plan, *, forks: int = 8, least: float = 0.8
) -> list[Group]:
    """Chains; ``wrong`` is 0 on a turn after which the chance of success is at least ``least`` of what it was before, 1 on the others.

    Relative progress estimation (GenPRM, Zhao et al. 2025): MC is the share of ``forks`` fresh rollouts that succeed from a state, and P = MC/MC' for
    the states after and before a turn. A plain share calls right whatever leaves some hope, however much was lost. Where no rollout succeeded
    once, all later turns are wrong. What comes after the last turn is the episode's own success. Of the rollouts only success counts, whatever
    the recipe's reward is; they are not trained on, and are in ``fork_steps`` and ``fork_tokens``. Where none from a state came
    through, the episode counts as an infrastructure fault. The judge `genprm` criticises the same turns, and the filter `genprm` keeps those episodes on which both agree. `forks` is ours.

    Worked by hand: MC = .75 .5 .5 .1 are P = .6667, 1, .2. And after a state without hope nothing is right.

    >>> right([0.75, 0.5, 0.5, 0.1], 0.8), right([0.5, 0, 0.25, 0.25], 0.8)
    ([False, True, False], [False, False, False])

    Raises:
        RecipeError: there is no rollout, or no progress is asked for.
    """
    if forks < 1 or least <= 0:
        raise RecipeError(
            f"strategy 'relative_progress': forks={forks}, least={least:g} tell no turns apart.",
            "Give forks from 1 on (8) and a share above 0 (0.8).",
        )
    trunk = iter(await runner(list(concatenate.from_iterable(plan)), branch_points=True))
    grown = [[next(trunk) for _ in group] for group in plan]
    shares = await fork_values(runner.paying(_success), grown, forks)
    return [[_labelled(played, group[0], shares, least) for played in group] for group in grown]


def right(shares: Sequence[float], least: float) -> list[bool]:
    """Say of each turn whether it was right, by the shares of success before the first, between two, and after the last."""
    hope, found = True, list[bool]()
    for before, after in pairwise(shares):
        hope = hope and before > 0
        found.append(hope and after / before >= least)
    return found


def _success(group: Group) -> Group:
    return [
        replace_turns(one, lambda turns, won=one.success: paid_instead(turns, float(won))) for one in group
    ]


def _labelled(played: RunnerResult, first: RunnerResult, shares: Values, least: float) -> Episode:
    episode = played.episode
    if not episode.outcome.counts:
        return episode
    met: list[float] = []
    for k in range(len(episode.trajectory.turns)):
        found = value_of(shares, first, played, k)
        if found is None:
            return replace(episode, outcome=Outcome.INFRA_ERROR, error=f"no fork of turn {k} came through")
        met.append(found.mean)
    labels = right([*met, float(episode.success)], least)
    return with_signals(episode, [{"wrong": float(not label)} for label in labels])
