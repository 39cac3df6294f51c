"""A language model that compares attempts two at a time, in a tournament."""

import re
from collections.abc import Sequence

from turnwise.agents.core import Episode, Policy
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.bracket import standings
from turnwise.trainers.kit.forms import POINTS
from turnwise.trainers.kit.reward_edits import with_signals

QUESTION = """\
Two agents tried the same task. Compare how well each did it.

=== Attempt A
{first}

=== Attempt B
{second}

Explain in a few sentences. Then end with one line: `POINTS: a b`, two numbers from 0 to 10."""


@component("judge", "tournament", paper="2601.06487", gives=("standing",))
async def tournament(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """The episodes of each group meet in a seeded single elimination; a policy gives both sides points.

    ``standing`` is 1 − place/(n − 1). Every pair is asked about in both orders and the points are added; an answer that
    cannot be read gives 5 to both. 4(n − 1) questions per group at most. Zhang et al. 2026.

    >>> points("A searched well.\\nPOINTS: 8 3"), points("no idea")
    ((8.0, 3.0), (5.0, 5.0))
    """
    judge = judge_policy(policy)
    return [await _rank(judge, group) for group in groups]


async def _rank(judge: Policy, group: Group) -> Group:
    asked = counting(group)

    async def compare(x: int, y: int) -> tuple[float, float]:
        (found,) = await compared(judge, [(group[asked[x]], group[asked[y]])])
        return found

    places = await standings(len(asked), compare)
    told = list(group)
    for i, place in zip(asked, places, strict=True):
        told[i] = with_signals(group[i], [{"standing": place}] * len(group[i].trajectory.turns))
    return told


async def compared(judge: Policy, pairs: Sequence[tuple[Episode, Episode]]) -> list[tuple[float, float]]:
    """The points of both attempts of each pair, added over both orders of asking."""
    questions: list[str] = []
    for pair in pairs:
        one, two = map(transcript, pair)
        questions += [QUESTION.format(first=one, second=two), QUESTION.format(first=two, second=one)]
    said = iter([points(answer) for answer in await ask(judge, questions, form=POINTS)])
    found: list[tuple[float, float]] = []
    for (a, b), (d, c) in zip(said, said, strict=True):
        found.append((a + c, b + d))
    return found


def points(answer: str) -> tuple[float, float]:
    """The points of both sides according to the judge's answer; 5 for both where it gives none."""
    found = re.findall(
        r"^[^\w\n>]*POINTS:[^\w\n]*(\d{1,6}(?:\.\d{1,6})?)[^\d\n]+(\d{1,6}(?:\.\d{1,6})?)",
        answer,
        re.MULTILINE | re.IGNORECASE,
    )
    return (float(found[-1][0]), float(found[-1][1])) if found else (5.0, 5.0)
