"""A language model that scores turns twice, read from the first to the last and from the last to the first."""

import re
from collections.abc import Sequence

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.reward_edits import with_signals

QUESTION = """\
Below is an attempt of an agent at a task{backwards}. How good was each turn? 0 is a mistake, 10 the best that could be done.

{transcript}

End with one line for each turn: `TURN n: s/10`."""
BACKWARDS = ", its turns from the last to the first, so that you see what became of each before you judge it"
_TURN = re.compile(r"^(?=\[turn \d+\] )", re.MULTILINE)


@component("judge", "biprm", paper="2508.01682", gives=("principle",))
async def biprm(
    groups: Sequence[Group], *, policy: str = "openai:judge", forward: float = 0.5
) -> list[Group]:
    """``principle`` is g·a + (1 − g)·c, a a turn's score read forwards, c read backwards, g = ``forward``.

    BiPRM (Zhang et al. 2025), the variant that needs no training, in which g is ½: later turns show what was wrong with earlier ones, so it is for
    finished episodes. Both readings are questions to one policy; a line that is missing or makes no sense gives 0. The score of an
    episode is the smallest of its turns (`turnwise audit log --judge biprm`, best_of). Left out: g from a network on both hidden states.

    Worked by hand: a = .9 .7 .4, c = .8 .3 .6, g = .5, .75 and .2.

    >>> [round(mixed(a, c, g), 4) for a, c, g in ((0.9, 0.8, 0.5), (0.7, 0.3, 0.75), (0.4, 0.6, 0.2))]
    [0.85, 0.6, 0.56]
    >>> scores("TURN 2: 7/10\\nTurn 1: 4 / 10\\nTURN 3: 11/10", 3)
    [0.4, 0.7, 0.0]

    Raises:
        RecipeError: the share of the forward reading is none.
    """
    if not 0 <= forward <= 1:
        raise RecipeError(f"judge 'biprm': forward={forward:g} is no share.", "Give it 0 to 1.")
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        asked, told = counting(group), list(group)
        shown = [transcript(group[i]) for i in asked]
        there = await ask(judge, [QUESTION.format(backwards="", transcript=text) for text in shown])
        back = await ask(
            judge, [QUESTION.format(backwards=BACKWARDS, transcript=reversed_turns(text)) for text in shown]
        )
        for i, a, c in zip(asked, there, back, strict=True):
            n = len(group[i].trajectory.turns)
            both = zip(scores(a, n), scores(c, n), strict=True)
            told[i] = with_signals(group[i], [{"principle": mixed(x, y, forward)} for x, y in both])
        judged.append(told)
    return judged


def mixed(a: float, c: float, forward: float) -> float:
    return forward * a + (1 - forward) * c


def reversed_turns(text: str) -> str:
    """A transcript with what was told first, then its turns from the last to the first, each with what was told after it.

    >>> print(reversed_turns("[told] go\\n[turn 1] left\\n[told] a wall\\n[turn 2] right"))
    [told] go
    [turn 2] right
    [turn 1] left
    [told] a wall
    """
    first, *turns = _TURN.split(text)
    return "\n".join(part.rstrip("\n") for part in (first, *reversed(turns)))


def scores(answer: str, turns: int) -> list[float]:
    """Each turn's points out of ten, as a share; 0 where the answer gives none."""
    found = [0.0] * turns
    for number, points in re.findall(
        r"^[^\w\n]*TURN[ \t]+(\d{1,6})[^\w\n]*:[ \t]*(\d{1,3})[ \t]*/[ \t]*10\b",
        answer,
        re.MULTILINE | re.IGNORECASE,
    ):
        if 1 <= int(number) <= turns:
            found[int(number) - 1] = int(points) / 10 if int(points) <= 10 else 0.0
    return found
