"""GenPRM: a language model that criticises each turn, runs what it wrote to check it, and says how likely the turn is right."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import chain
from statistics import mean
from typing import Literal

from turnwise.agents.core import Episode, Policy
from turnwise.agents.policies.scoring import scorer_of
from turnwise.envs.code.runner import get_runner
from turnwise.envs.messages import Messages
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.judge.rlbff import AFTER_THOUGHT, AT_ONCE, answered
from turnwise.trainers.kit.asking import ask_samples, counting, judge_policy, quoted, transcript_of
from turnwise.trainers.kit.forms import YES_OR_NO
from turnwise.trainers.kit.reward_edits import with_signals

SHOWN = """\
Below is an attempt of an agent at a task, up to its turn {number}.

{transcript}

"""
CRITICISE = "Think step by step about turn {number}: is it a right step, by what was known then?"
CODE = """ \
What can be computed, compute: write Python in blocks that begin with ```python and end with ```. \
They are run in their order, and you are shown what they print."""
CRITIQUE = """\
=== Your critique
> {critique}

"""
PRINTED = """\
=== What your code printed
> {printed}

"""
DECIDE = "By all this, is turn {number} right? "
SECONDS = 5.0
"""That a critique's code may take."""
_BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@component("judge", "genprm", paper="2504.00891", gives=("principle",))
async def genprm(
    groups: Sequence[Group],
    *,
    policy: str = "openai:judge",
    critiques: int = 8,
    code: bool = True,
    form: Literal["generative", "chance"] = "generative",
) -> list[Group]:
    """``principle`` of a turn is the mean over ``critiques`` of how far the policy, after a critique and what its code printed, calls it right.

    GenPRM (Zhao et al. 2025), a process model that reasons before it says Yes: it sees an episode up to the turn, writes a critique with Python in it, which runs in a
    sandbox, and is asked once more with what was printed. By ``chance`` its verdict is P(Yes) in P(Yes) + P(No), as the paper's, which needs a
    policy that tells log-probabilities; ``generative`` verdicts are 1 and 0, and an answer that is neither counts 0. The mean is the paper's vote.
    2 × ``critiques`` questions a turn, and turns with one history share them. Without ``code`` none is asked for, and none runs. Labels to train such a model on are those of
    the strategy `relative_progress` that agree with it (filter `genprm`); their fine-tuning is left out.

    Worked by hand: P(Yes) of .9, .6 and .3 are .6; of the code in a critique all blocks run as one program.

    >>> round(mean([0.9, 0.6, 0.3]), 4), programs("So:\\n```python\\nx = 2\\n```\\nand\\n```python\\nprint(x)\\n```\\n")
    (0.6, 'x = 2\\nprint(x)\\n')

    Raises:
        RecipeError: there is no critique.
        EngineError: the policy tells no log-probabilities, or cannot be reached.
        MissingDependencyError: there is code, and no sandbox to run it in.
    """
    if critiques < 1:
        raise RecipeError(f"judge 'genprm': critiques={critiques} say nothing.", "Give 1 or more (8).")
    judge = judge_policy(policy)
    asked = {(g, i): _prefixes(group[i]) for g, group in enumerate(groups) for i in counting(group)}
    every = list(dict.fromkeys(one for prefixes in asked.values() for one in prefixes))
    votes = await _verdicts(judge, every, critiques, code=code, form=form)
    score = dict(zip(every, map(mean, zip(*votes, strict=True)), strict=True))
    told = [list(group) for group in groups]
    for (g, i), prefixes in asked.items():
        told[g][i] = with_signals(groups[g][i], [{"principle": score[one]} for one in prefixes])
    return [*told]


def programs(critique: str) -> str:
    """The code of a critique; empty where there is none."""
    return "".join(_BLOCK.findall(critique))


def _prefixes(episode: Episode) -> list[tuple[int, str]]:
    """By number from 1: what the judge of a turn sees of its episode, which is nothing of what came of it."""
    turns = [(turn.observation, turn.action) for turn in episode.trajectory.turns]
    return [
        (k, SHOWN.format(number=k, transcript=transcript_of(turns[:k], Messages())))
        for k in range(1, len(turns) + 1)
    ]


async def _verdicts(
    judge: Policy,
    shown: Sequence[tuple[int, str]],
    samples: int,
    *,
    code: bool,
    form: Literal["generative", "chance"],
) -> list[list[float]]:
    """How far each sample of a critique calls each turn right."""
    wanted = CRITICISE + CODE if code else CRITICISE
    asked = [text + wanted.format(number=k) for k, text in shown]
    critiques = await ask_samples(judge, [asked] * samples)
    questions = [await _decisive(shown, some, code=code, form=form) for some in critiques]
    if form == "chance":
        told = iter(await scorer_of(judge).yes_no([*chain(*questions)]))
        return [[next(told).chance for _ in some] for some in questions]
    answers = await ask_samples(judge, questions, form=YES_OR_NO)
    return [[answered(answer) for answer in some] for some in answers]


async def _decisive(
    shown: Sequence[tuple[int, str]],
    critiques: Sequence[str],
    *,
    code: bool,
    form: Literal["generative", "chance"],
) -> list[str]:
    """The questions for a verdict on each turn, by its critique and what its code printed."""
    printed = await asyncio.gather(*(asyncio.to_thread(_run, one) for one in critiques if code))
    return [
        text
        + CRITIQUE.format(critique="\n> ".join(critique.splitlines()))
        + (PRINTED.format(printed=quoted(out)) if out else "")
        + DECIDE.format(number=k)
        + (AFTER_THOUGHT if form == "generative" else AT_ONCE)
        for (k, text), critique, out in zip(shown, critiques, printed or [""] * len(critiques), strict=True)
    ]


def _run(critique: str) -> str:
    """What a critique's code prints; empty where it has none."""
    source = programs(critique)
    return (get_runner("auto").script(source, SECONDS).text or "(nothing)") if source else ""
