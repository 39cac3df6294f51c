"""One noisy judge asked in three forms, for plans/judging-forms.yaml: a score for each attempt, wins over the others, votes.

The judge knows the outcome. What it feels about an attempt is 1 for a solved task and 0 for a failed one, plus a mistake that it makes whenever it
sees that attempt (normal, ``kept``) and another one at each question (normal, ``fresh``). No model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.judge.pref_grpo import rates
from turnwise.trainers.kit.reward_edits import with_signals

Felt = Callable[[Episode, int], float]
"""What the judge feels about an attempt at a question of this number."""


def _felt(kept: float, fresh: float, seed: int) -> Felt:
    def felt(episode: Episode, question: int) -> float:
        said = [str(turn.action) for turn in episode.trajectory.turns]
        of_attempt = derive_rng("kept", seed, episode.task.id, episode.seed, *said).gauss(0, kept)
        of_question = derive_rng("fresh", seed, question, episode.task.id, episode.seed, *said).gauss(
            0, fresh
        )
        return float(episode.success) + of_attempt + of_question

    return felt


def _paid(group: Group, scores: Sequence[float], name: str) -> Group:
    return [
        with_signals(one, [{name: score}] * len(one.trajectory.turns))
        for one, score in zip(group, scores, strict=True)
    ]


@component("judge", "pointwise", gives=("pointwise",))
async def pointwise(
    groups: Sequence[Group], *, kept: float = 0.5, fresh: float = 1.0, seed: int = 0
) -> list[Group]:
    """One question for each attempt, whose score is what the judge feels."""
    felt = _felt(kept, fresh, seed)
    return [_paid(group, [felt(one, 0) for one in group], "pointwise") for group in groups]


@component("judge", "wins", gives=("wins",))
async def wins(
    groups: Sequence[Group], *, kept: float = 0.5, fresh: float = 1.0, seed: int = 0
) -> list[Group]:
    """One question for each pair, won by the attempt that the judge feels better about then; wins over the number of others."""
    felt = _felt(kept, fresh, seed)
    judged: list[Group] = []
    for group in groups:
        points = [
            (felt(group[i], 1 + j), felt(group[j], 1 + i)) for i, j in combinations(range(len(group)), 2)
        ]
        judged.append(_paid(group, rates(len(group), points), "wins"))
    return judged


@component("judge", "ballots", gives=("ballots",))
async def ballots(
    groups: Sequence[Group], *, n: int = 7, kept: float = 0.5, fresh: float = 1.0, seed: int = 0
) -> list[Group]:
    """``n`` questions for each attempt, each answered solved or not; the share that says solved."""
    felt = _felt(kept, fresh, seed)
    return [
        _paid(group, [sum(felt(one, q) > 0.5 for q in range(n)) / n for one in group], "ballots")
        for group in groups
    ]
