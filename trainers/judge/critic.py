"""A language model that names the wrong turns of an episode."""

import re
from collections.abc import Sequence
from typing import Literal

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask_samples, counting, judge_policy, transcript
from turnwise.trainers.kit.forms import WRONG_TURNS
from turnwise.trainers.kit.reward_edits import with_signals

QUESTION = """\
Below is an attempt of an agent at a task. {hint} Judge each of its turns by itself: is the step a mistake?

{transcript}

Explain in a few sentences. Then end with one line: `WRONG: ` and the numbers of the wrong turns, or `WRONG: none`."""
HINTS = (
    "The attempt failed: find the turns that led there, or were of no use.",
    "The attempt succeeded: still, some turns may have been mistakes.",
)


@component("judge", "critic", paper="2508.02298", gives=("wrong",))
async def critic(
    groups: Sequence[Group],
    *,
    policy: str = "openai:judge",
    critiques: int = 4,
    vote: Literal["intersection", "majority", "mean"] = "intersection",
) -> list[Group]:
    """A policy reads each episode ``critiques`` times and says which turns are wrong.

    ``wrong``: by ``intersection`` 1 where all readable critiques say so, by ``majority`` where more than half do, by ``mean``
    their share. CAPO (Xie et al. 2025); the hints are TP-GRPO's intrinsic signal (2507.23317), which tells the
    judge how the attempt ended. Answers that cannot be read deduct nothing.

    >>> verdict(["…\\nWRONG: 2, 3", "WRONG: 3", "I cannot say."], 3, "intersection")
    [0.0, 0.0, 1.0]
    >>> verdict(["WRONG: 2, 3", "WRONG: 3", "WRONG: none"], 3, "mean") == [0.0, 1 / 3, 2 / 3]
    True
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        asked = counting(group)
        questions = [
            QUESTION.format(hint=HINTS[group[i].success], transcript=transcript(group[i])) for i in asked
        ]
        answers = await ask_samples(judge, [questions] * critiques, form=WRONG_TURNS)
        told = list(group)
        for place, i in enumerate(asked):
            turns = len(group[i].trajectory.turns)
            found = verdict([answers[n][place] for n in range(critiques)], turns, vote)
            told[i] = with_signals(group[i], [{"wrong": wrong} for wrong in found])
        judged.append(told)
    return judged


def verdict(
    answers: Sequence[str], turns: int, vote: Literal["intersection", "majority", "mean"]
) -> list[float]:
    """Return how wrong each turn is, from 0 to 1, according to those of the judge's answers that can be read."""
    said = [numbers for answer in answers if (numbers := _numbers(answer)) is not None]
    shares = [sum(k in numbers for numbers in said) / max(1, len(said)) for k in range(1, turns + 1)]
    if vote == "mean":
        return shares
    return [float(share == 1.0 if vote == "intersection" else share > 0.5) for share in shares]


def _numbers(answer: str) -> set[int] | None:
    """The turns that an answer calls wrong; None where it does not say."""
    lines = re.findall(r"^[^\w\n>]*WRONG:[^\w\n]*(none\b|\d[\d, ]*)", answer, re.MULTILINE | re.IGNORECASE)
    return None if not lines else {int(n) for n in re.findall(r"\d+", lines[-1])}
