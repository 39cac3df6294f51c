"""RISE: the policy's own fresh attempts become tasks that ask whether they succeeded."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from turnwise.envs.judging.drawing import AttemptPart
from turnwise.envs.judging.recorded import Recorded
from turnwise.envs.judging.tasks import ENV, verdict_task
from turnwise.envs.judging.verdicts import like_attempts
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.kit.attempts import attempt_of
from turnwise.trainers.proposer.core import ProposerContext, TaskProposal


@component("proposer", "rise", paper="2505.13445", envs=(ENV,))
def rise(see: ProposerContext, *, share: float = 0.125, balanced: bool = True) -> list[TaskProposal]:
    """Turns a share of the attempts just played into tasks of ``turnwise/Judging-v0``: did this one solve its task?

    RISE (Liu et al. 2025): in each batch 128 of the 1024 solutions just made are asked about, the answer is the verifier's own verdict, and both
    kinds are learned in one step, so that what is verified always comes from the policy as it is. Both are paid alike, by the
    reward `rise`: 1, −½ and −1. An attempt is shown up to its last act and not what came of it. Attempts that read the same are asked about
    once. Ours: a verdict is yes or no, where the paper's model repeats the score. And ``balanced``: each solved attempt has an unsolved one beside it, up
    to an act of the same place and kind, so that neither the length nor always saying the same earns anything; where none is alike,
    nothing is asked. Without it the share is drawn as it comes. Its learned value is `credit: gae`, its KL is `loss: {name: kl, weight: 0.01}`.

    Worked by hand: an eighth of 1024 is 128. Of 6 attempts, 2 of them solved, half are to be asked about: 1 that was solved and 1 that
    was not (3 is no even number).

    >>> wanted(1024, 0.125), wanted(3, 0.125), wanted(0, 0.125)
    (128, 1, 0)
    >>> from turnwise.trainers.proposer.toy import attempts
    >>> made = rise(ProposerContext(0, 0, attempts([True, False, False, True, False, False])), share=0.5)
    >>> [one.task.gold for one in made]
    ['yes', 'no']
    >>> print(made[0].task.prompt.partition(" : ")[2])
    say yes or no
    1 > say yes
    <BLANKLINE>
    Does the last act solve the task ? yes or no

    Raises:
        RecipeError: ``share`` is no share.
    """
    if not 0 < share <= 1:
        raise RecipeError(f"proposer 'rise': share={share:g} is no share.", "Give one above 0 and up to 1.")
    read = [
        attempt_of(one) for group in see.played for one in group if one.outcome.counts and one.task.env != ENV
    ]
    attempts = [*{one.turns: one for one in read if one is not None}.values()]
    rng, most = see.rng("rise"), wanted(len(attempts), share)
    if balanced:
        chosen = _balanced(rng, attempts, most)
    else:
        chosen = [AttemptPart(one, len(one.turns)) for one in rng.sample(attempts, most)]
    return [TaskProposal(verdict_task(rng, part)) for part in chosen]


def wanted(attempts: int, share: float) -> int:
    """Return how many of so many attempts are asked about: the share, rounded, and one at least."""
    return min(attempts, max(1, round(share * attempts)))


def _balanced(rng: Random, attempts: Sequence[Recorded], most: int) -> list[AttemptPart]:
    """Solved attempts and as many unsolved ones that are like them, no more than ``most`` together but for one of each."""
    pairs: list[tuple[AttemptPart, AttemptPart]] = []
    for sides in like_attempts(attempts).values():
        failed = [*{part.episode.turns[: part.turns]: part for part in sides[False]}.values()]
        each = min(len(sides[True]), len(failed))
        pairs += zip(rng.sample(sides[True], each), rng.sample(failed, each), strict=True)
    return [part for pair in rng.sample(pairs, min(len(pairs), max(1, most // 2))) for part in pair]
