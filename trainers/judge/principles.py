"""A language model that states principles for each turn and scores it by them."""

import re
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.forms import KEPT
from turnwise.trainers.kit.reward_edits import with_signals

QUESTION = """\
Below is an attempt of an agent at a task. For every turn first state the principles by which a good turn at this
point is known, one point each; then check how many of them the turn keeps. Do not judge how the attempt ended.

{transcript}

End with one line for each turn: `TURN n: s/m`, where m principles apply and s are kept."""


@component("judge", "principles", paper="2509.25598", gives=("principle",))
async def principles(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """A policy reads each episode and gives every turn s points out of m.

    ``principle`` is s/m in [0, 1]; a line that is missing or makes no sense (m ≤ 0, s > m) gives 0. Xu et al. 2025, whose
    judge is a trained model that sees one turn at a time; here any policy sees the whole attempt at once.

    >>> scores("TURN 1: 2/4\\nTURN 2: 5/4\\nTURN 3: 3/3", 4)
    [0.5, 0.0, 1.0, 0.0]
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        asked, told = counting(group), list(group)
        answers = await ask(
            judge, [QUESTION.format(transcript=transcript(group[i])) for i in asked], form=KEPT
        )
        for i, answer in zip(asked, answers, strict=True):
            found = scores(answer, len(group[i].trajectory.turns))
            told[i] = with_signals(group[i], [{"principle": score} for score in found])
        judged.append(told)
    return judged


def scores(answer: str, turns: int) -> list[float]:
    """The share of the principles that each turn follows, according to the judge's answer."""
    found = [0.0] * turns
    for number, kept, total in re.findall(
        r"^[^\w\n>]*TURN[ \t]+(\d{1,6})[^\w\n]*:[^\w\n]*(\d{1,6})\s*/\s*(\d{1,6})",
        answer,
        re.MULTILINE | re.IGNORECASE,
    ):
        n, s, m = int(number), int(kept), int(total)
        if 1 <= n <= turns:
            found[n - 1] = s / m if m > 0 and s <= m else 0.0
    return found
