"""A language model that says by how much one attempt is better than another, for all pairs of a group."""

import re
from collections.abc import Sequence

from torch import Tensor

from turnwise.agents.core import Policy
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of

STRONGEST = 3
EPS = 1e-6
QUESTION = """\
Two agents tried the same task. Compare how well each did it.

=== Attempt A
{first}

=== Attempt B
{second}

Think it over. Then end with one line: `STRENGTH: d`, a whole number from -3 (B is far better) to 3 (A is far better)."""


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"preference": (p.return_N.sigmoid() - 0.5)[:, None] * turns_of(p)}


@component("judge", "think_rm", paper="2505.16265", gives=("preference",), stand_in=_stand_in)
async def think_rm(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """A policy compares every two episodes of a group in both orders; ``preference`` is what that says of each against all others.

    d_ij from −3 to 3 is half the difference of both orders' answers, so that d_ij = −d_ji; one that cannot be read says 0.
    ``preference`` is (1/G)·Σ_j d_ij / sqrt(Σ_ij d_ij²/(2·G·(G − 1)) + 1e-6): of differences of numbers it is their distance from the mean in sample deviations, and
    smaller where preferences run in a circle. Think-RM (Hong et al. 2025); the credit rule `think_rm` learns from it. G·(G − 1) questions
    a group. The judge itself is trained on `judging:strength:` (docs/judging.md).

    Worked by hand: strengths of r = 2, 1, 0, and a circle of 2, −1, 2.

    >>> [round(x, 4) + 0.0 for x in standardised([[0, 1, 2], [-1, 0, 1], [-2, -1, 0]])]
    [1.0, 0.0, -1.0]
    >>> [round(x, 4) + 0.0 for x in standardised([[0, 2, -1], [-2, 0, 2], [1, -2, 0]])]
    [0.2722, 0.0, -0.2722]
    """
    judge = judge_policy(policy)
    return [await _compared(judge, group) for group in groups]


async def _compared(judge: Policy, group: Group) -> Group:
    asked = counting(group)
    shown = [transcript(group[i]) for i in asked]
    pairs = [(i, j) for i in range(len(asked)) for j in range(len(asked)) if i != j]
    questions = [QUESTION.format(first=shown[i], second=shown[j]) for i, j in pairs]
    said = dict(zip(pairs, map(strength, await ask(judge, questions)), strict=True))
    half = [
        [(said[i, j] - said[j, i]) / 2 if i != j else 0.0 for j in range(len(asked))]
        for i in range(len(asked))
    ]
    told = list(group)
    for i, preference in zip(asked, standardised(half), strict=True):
        told[i] = with_signals(group[i], [{"preference": preference}] * len(group[i].trajectory.turns))
    return told


def standardised(strengths: Sequence[Sequence[float]]) -> list[float]:
    """Each row's mean, over the root mean square of all pairs' strengths."""
    n = len(strengths)
    if n < 2:
        return [0.0] * n
    scale = (sum(d * d for row in strengths for d in row) / (2 * n * (n - 1)) + EPS) ** 0.5
    return [sum(row) / n / scale for row in strengths]


def strength(answer: str) -> float:
    """By how much A is better, according to the judge's answer; 0 where it does not say.

    >>> strength("B is better.\\nSTRENGTH: -2"), strength("STRENGTH: 7"), strength("no idea")
    (-2.0, 0.0, 0.0)
    """
    found = re.findall(r"^[^\w\n]*STRENGTH:[^\w\n]*?([-−]?\d{1,3})\b", answer, re.MULTILINE | re.IGNORECASE)
    value = float(found[-1].replace("−", "-")) if found else 0.0
    return value if abs(value) <= STRONGEST else 0.0
