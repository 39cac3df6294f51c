"""Writing-Zero: each attempt against one of its group that is drawn by chance."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.judge.tournament import points
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of

QUESTION = """\
Two agents tried the same task. Compare how well each did it.

=== Attempt A
{first}

=== Attempt B
{second}

First write down two to five principles by which attempts at this very task should be judged, each with its weight; the weights sum to 100. \
Then hold both attempts against each principle, in a sentence or two. Then end with one line: `POINTS: a b`, two numbers from 0 to 10."""


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    turns_NK = turns_of(p)
    return {"against_one": (torch.arange(len(turns_NK)) % 3 - 1)[:, None] * turns_NK}


@component("judge", "writing_zero", paper="2506.00103", gives=("against_one",), stand_in=_stand_in)
async def writing_zero(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """1 where an attempt beats the group's temporary reference in both orders, −1 where not, 0 for the reference; on every turn.

    The reference is a member that a generator seeded by the episodes draws. The judge writes the principles of its judgement first, and holds both attempts
    against each of them before it gives points. An answer that cannot be read gives 5 to both; a tie is no win. Bootstrapped relative policy optimization (Writing-Zero) takes the values as advantages as they are, centred
    since the reference is anybody: `reward: {name: own_probability, signal: against_one, weight: 1, format: 0}`, `credit: reinforce`, and
    `filter: writing_zero`, which drops groups whose reference was unusual.
    2(G − 1) questions for each group. Left out: the training of their judge on pairs that people compared; its words are ours.

    >>> verdict((8, 3), (2, 9)), verdict((8, 3), (9, 2)), verdict((5, 5), (5, 5))
    (1.0, -1.0, -1.0)
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        told, asked = list(group), counting(group)
        if not asked:
            judged.append(told)
            continue
        names = sorted(group[i].seed for i in asked)
        against = derive_rng("writing zero", names).choice(asked)
        others = [i for i in asked if i != against]
        shown = {i: transcript(group[i]) for i in asked}
        questions = [
            QUESTION.format(first=first, second=second)
            for i in others
            for first, second in ((shown[i], shown[against]), (shown[against], shown[i]))
        ]
        found = [points(answer) for answer in await ask(judge, questions)]
        value = {against: 0.0, **{i: verdict(*found[2 * n : 2 * n + 2]) for n, i in enumerate(others)}}
        for i in asked:
            told[i] = with_signals(group[i], [{"against_one": value[i]}] * len(group[i].trajectory.turns))
        judged.append(told)
    return judged


def verdict(there: tuple[float, float], back: tuple[float, float]) -> float:
    """1 where the first of one order, which is the second of the other, has more points in both."""
    return 1.0 if there[0] > there[1] and back[1] > back[0] else -1.0
