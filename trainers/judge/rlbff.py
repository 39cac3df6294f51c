"""Principles that an attempt keeps or does not, by how likely a model says yes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import mean
from typing import Literal

from torch import Tensor

from turnwise.agents.policies.scoring import scorer_of
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.forms import YES_OR_NO
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave

QUESTION = """\
Below is an attempt of an agent at a task.

{transcript}

Does {what} satisfy this principle: {principle}
"""
AT_ONCE = "Answer with one word, Yes or No."
AFTER_THOUGHT = "Explain in a few sentences. Then end with one line: `ANSWER: yes` or `ANSWER: no`."
_ANSWER = re.compile(r"^[^\w\n>]*ANSWER:[^\w\n]*(yes|no)\b", re.MULTILINE | re.IGNORECASE)


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"rlbff": (0.5 - 0.4 * wave(p)) * turns_of(p)}


@component("judge", "rlbff", gives=("rlbff",), stand_in=_stand_in)
async def rlbff(
    groups: Sequence[Group],
    *,
    policy: str = "openai:judge",
    principles: tuple[str, ...] = ("It does what the task asks for.",),
    combine: Literal["mean", "min"] = "mean",
    of: Literal["episode", "turns"] = "episode",
    form: Literal["generative", "chance", "odds"] = "generative",
) -> list[Group]:
    """A model is asked whether an attempt, or each of its turns, satisfies each principle; nothing but yes or no counts.

    Two forms of a reward model (RLBFF): ``generative``, the model explains first, and yes is 1, no 0. And by one forward pass, which needs a
    policy that tells log-probabilities: with r = log P(Yes) − log P(No) in the first place where the two answers differ, a principle counts σ(r)
    (``chance``) or r (``odds``, at most 20 either way). Several principles count their mean, or their least (for
    those that must be kept: ours). An answer that is neither counts 0. ``policy: self`` asks the policy that is trained. Left out: a model
    trained on principles that people named.

    Worked by hand: log P(Yes) = −.1, log P(No) = −2.3 are r = 2.2, σ(r) = .9002 (`turnwise.agents.policies.scoring.YesNo`).

    >>> answered("It does not. ANSWER: yes\\n**ANSWER:** No"), answered("Answer: YES."), answered("Yes!")
    (0.0, 1.0, 0.0)

    Raises:
        RecipeError: there is no principle.
        EngineError: the policy tells no log-probabilities, or cannot be reached.
    """
    if not principles:
        raise RecipeError("judge 'rlbff' has no principle.", "Give at least one: principles: [It …].")
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        told, places = list(group), list[tuple[int, int]]()
        questions: list[str] = []
        for i in counting(group):
            shown = transcript(group[i])
            for k in range(len(group[i].trajectory.turns) if of == "turns" else 1):
                what = f"turn {k + 1}" if of == "turns" else "the attempt"
                places.append((i, k))
                questions += [
                    QUESTION.format(transcript=shown, what=what, principle=one)
                    + (AFTER_THOUGHT if form == "generative" else AT_ONCE)
                    for one in principles
                ]
        if form == "generative":
            said = [answered(answer) for answer in await ask(judge, questions, form=YES_OR_NO)]
        else:
            said = [getattr(one, form) for one in await scorer_of(judge).yes_no(questions)]
        n, found = len(principles), dict[tuple[int, int], float]()
        for place, at in enumerate(places):
            each = said[place * n : place * n + n]
            found[at] = mean(each) if combine == "mean" else min(each)
        for i in counting(group):
            turns = range(len(group[i].trajectory.turns))
            told[i] = with_signals(group[i], [{"rlbff": found[i, k if of == "turns" else 0]} for k in turns])
        judged.append(told)
    return judged


def answered(answer: str) -> float:
    """1 where the last line of its kind says yes, else 0."""
    found = _ANSWER.findall(answer)
    return float(bool(found) and found[-1].lower() == "yes")
