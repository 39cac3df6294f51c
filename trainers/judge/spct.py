"""SPCT: a language model that writes principles, criticises all attempts of a group by them and scores them, several times in orders drawn by chance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from turnwise.agents.policies.scoring import scorer_of
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.judge.rlbff import AT_ONCE
from turnwise.trainers.kit.asking import ask_samples, counting, judge_policy, transcript
from turnwise.trainers.kit.reward_edits import with_signals

QUESTION = """\
Agents tried the same task. These are their attempts.

{attempts}

First write down the principles by which attempts at this very task should be judged, each with its weight. Then criticise every attempt by them. \
Then end with one line: `SCORES: ` and a whole number from 1 to 10 for each attempt, in their order."""
META = """\
{question}

=== What was answered
> {critique}

Are the critique and its scores right? """
HIGHEST = 10


class VoteOrder(NamedTuple):
    """A question about a group, and the places of the attempts in the order in which they are shown."""

    question: str
    order: tuple[int, ...]


class CastVote(NamedTuple):
    """The scores of a sample, by place in the group, and how far the sample is trusted."""

    scores: Mapping[int, float]
    trust: float = 0.0


@component("judge", "spct", gives=("spct",))
async def spct(
    groups: Sequence[Group], *, policy: str = "openai:judge", samples: int = 8, meta: str = ""
) -> list[Group]:
    """The sum of ``samples`` scores from 1 to 10 of each attempt, on every turn; each time all attempts of the group are criticised together.

    DeepSeek-GRM, which self-principled critique tuning (SPCT) trains: it writes its principles first, then a critique, then a whole number for
    each attempt, and every sample sees the attempts in another order, drawn by a generator that the episodes seed. S*_j = Σ_i S_ij is finer than one
    score; who has equal sums is not preferred. An answer without just as many numbers from 1 to 10 adds nothing. With ``meta``, a policy that tells
    log-probabilities says how likely the critique and scores of each sample are right, and the best half alone is summed. ``samples`` questions a group, and as many again with ``meta``.
    Paid alone it is `reward: {name: own_probability, signal: spct, weight: 1, format: 0}`. Left out: the reinforcement of the judge (+1 where its best score is the true best's alone, else −1) and
    a meta model that is trained; for single attempts the suite judging:verdict with `worst: -1` pays just that.

    Worked by hand: 6 and 8, 7 and 4, 5 and 7 are 18 and 19, so the second is preferred; of the better half, the second sample alone, the first.

    >>> votes = [CastVote({0: 6, 1: 8}, 0.2), CastVote({0: 7, 1: 4}, 0.9), CastVote({0: 5, 1: 7}, 0.3)]
    >>> [summed(votes, 3, j) for j in (0, 1)], [summed(votes, 1, j) for j in (0, 1)]
    ([18.0, 19.0], [7.0, 4.0])
    >>> scores("Principles: …\\nSCORES: 7, 4", 2), scores("SCORES: 7 11", 2), scores("SCORES: 7", 2)
    ([7.0, 4.0], [], [])

    Raises:
        RecipeError: nothing is sampled.
        EngineError: ``meta`` tells no log-probabilities, or a policy cannot be reached.
    """
    if samples < 1:
        raise RecipeError(f"judge 'spct': samples={samples} score nothing.", "Give 1 or more (8).")
    told = [list(group) for group in groups]
    judging = [g for g, group in enumerate(groups) if counting(group)]
    asked = [[_order(groups[g], n) for g in judging] for n in range(samples)]
    answers = await ask_samples(judge_policy(policy), [[one.question for one in each] for each in asked])
    cast = await _cast([*chain(*asked)], [*chain(*answers)], meta)
    votes = {g: cast[place :: len(judging)] for place, g in enumerate(judging)}
    keep = max(1, samples // 2) if meta else samples
    for g in judging:
        for i in counting(groups[g]):
            total = summed(votes[g], keep, i)
            told[g][i] = with_signals(told[g][i], [{"spct": total}] * len(told[g][i].trajectory.turns))
    return [*told]


def summed(votes: Sequence[CastVote], keep: int, place: int) -> float:
    """The sum of the scores of an attempt, over so many votes that are trusted most."""
    trusted = sorted(votes, key=lambda vote: -vote.trust)[:keep]
    return float(sum(vote.scores.get(place, 0.0) for vote in trusted))


def scores(answer: str, attempts: int) -> list[float]:
    """The scores of so many attempts, by the last line of that form; none where it is not as it was asked for."""
    lines = re.findall(r"^[^\w\n>]*SCORES:[^\w\n]*(\d[\d, \t]*)", answer, re.MULTILINE | re.IGNORECASE)
    found = [float(x) for x in re.findall(r"\d{1,9}", lines[-1])] if lines else []
    return found if len(found) == attempts and all(1 <= x <= HIGHEST for x in found) else []


def _order(group: Group, n: int) -> VoteOrder:
    """The n-th question about a group."""
    order = counting(group)
    derive_rng("spct", sorted(group[i].seed for i in order), n).shuffle(order)
    shown = [f"=== Attempt {number}\n{transcript(group[i])}" for number, i in enumerate(order, 1)]
    return VoteOrder(QUESTION.format(attempts="\n\n".join(shown)), tuple(order))


async def _cast(asked: Sequence[VoteOrder], answers: Sequence[str], meta: str) -> list[CastVote]:
    """Votes of these answers; one that cannot be read says nothing, and nobody is asked to trust it."""
    read = [scores(answer, len(one.order)) for one, answer in zip(asked, answers, strict=True)]
    votes = [
        CastVote(dict(zip(one.order, found, strict=False))) for one, found in zip(asked, read, strict=True)
    ]
    if not meta:
        return votes
    readable = [k for k, found in enumerate(read) if found]
    questions = [
        META.format(question=asked[k].question, critique="\n> ".join(answers[k].splitlines())) + AT_ONCE
        for k in readable
    ]
    for k, told in zip(readable, await scorer_of(judge_policy(meta)).yes_no(questions), strict=True):
        votes[k] = votes[k]._replace(trust=told.chance)
    return votes
