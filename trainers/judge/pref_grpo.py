"""Win rates: every two attempts of a group are compared, and no score is given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.judge.tournament import QUESTION, points
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.reward_edits import with_signals


@component("judge", "pref_grpo", gives=("win_rate",))
async def pref_grpo(
    groups: Sequence[Group], *, policy: str = "openai:judge", both_orders: bool = True
) -> list[Group]:
    """Wins over the other members of the group, a tie counting a half, divided by their number; on every turn.

    Pref-GRPO: gaps of scores that mean nothing become large advantages where a group's scores are nearly alike; win rates keep the
    order alone. All G(G − 1)/2 pairs are asked about, with ``both_orders`` both ways around, by the question of `tournament`, whose points
    are added; equal points, and answers that cannot be read, are ties. An attempt without an opponent has ½. Paid alone
    it is `reward: {name: own_probability, signal: win_rate, weight: 1, format: 0}` with `credit: grpo`.

    Worked by hand: A beats B and C, which tie.

    >>> rates(3, [(8, 3), (9, 2), (5, 5)])
    [1.0, 0.25, 0.25]
    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo(turn_batch([[1.0], [0.25], [0.25]])), 4)
    [[1.1547], [-0.5773], [-0.5773]]
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        told, asked = list(group), counting(group)
        shown = [transcript(group[i]) for i in asked]
        questions: list[str] = []
        for one, two in combinations(shown, 2):
            questions.append(QUESTION.format(first=one, second=two))
            if both_orders:
                questions.append(QUESTION.format(first=two, second=one))
        answers = iter([points(answer) for answer in await ask(judge, questions)])
        met: list[tuple[float, float]] = []
        for _ in combinations(shown, 2):
            a, b = next(answers)
            d, c = next(answers) if both_orders else (0.0, 0.0)
            met.append((a + c, b + d))
        for i, rate in zip(asked, rates(len(asked), met), strict=True):
            told[i] = with_signals(group[i], [{"win_rate": rate}] * len(group[i].trajectory.turns))
        judged.append(told)
    return judged


def rates(n: int, met: Sequence[tuple[float, float]]) -> list[float]:
    """The share of the others that each of n beats, by the points of all pairs in order; ½ where there is no other."""
    wins = [0.0] * n
    for (i, j), (a, b) in zip(combinations(range(n), 2), met, strict=True):
        wins[i] += (a > b) + (a == b) / 2
        wins[j] += (b > a) + (a == b) / 2
    return [x / (n - 1) for x in wins] if n > 1 else [0.5] * n
