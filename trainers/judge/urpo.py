"""URPO: the policy itself scores attempts at tasks that nobody can check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil

from torch import Tensor

from turnwise.envs.judging.actions import numbers, said
from turnwise.envs.judging.drawing import AttemptPart
from turnwise.envs.judging.env import JudgingEnv
from turnwise.envs.judging.recorded import Recorded
from turnwise.envs.judging.tasks import ENV
from turnwise.envs.judging.verdicts import MOST, how_well
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy
from turnwise.trainers.kit.attempts import attempt_of
from turnwise.trainers.kit.reward_edits import part_total, with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave

HIGHEST = 10
_WORD = re.compile(r"[^\W\d_]")


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"self_score": (0.5 - 0.4 * wave(p)) * turns_of(p)}


@component("judge", "urpo", gives=("self_score",), stand_in=_stand_in)
async def urpo(
    groups: Sequence[Group],
    *,
    policy: str = "self",
    checked: tuple[str, ...] = (ENV,),
    together: int = 3,
) -> list[Group]:
    """On every turn, the policy's own score of the attempt where nobody checks its task, from 0 to 1; what the world paid where somebody does.

    URPO: one model is player and referee. A batch has tasks that are checked, lists of attempts that the model scores and is paid
    Kendall's τ for (judging/rank), and open-ended tasks, whose attempts it scores itself; the score is their reward within the group. Here ``checked`` names the environments
    whose outcome is believed, and tasks of any other are open-ended. ``together`` attempts of a group, or a few less, are scored at a time,
    in the words of judging/rank, so that what is learned there is what judges here; numbers from 0 to 10 are a tenth each, those beyond are cut, and an answer with
    another count of them, or with words, says 0 for all. An attempt is shown up to its last act. All is paid by
    `reward: {name: own_probability, signal: self_score, weight: 1, format: 0}`. The phase that calibrates the referee first is a run without open-ended
    tasks, whose policy this one begins with.

    Worked by hand: τ of the scores 3, 1, 2, 0 for what is worth 3, 2, 1, 0, of the reverse, and of two in the wrong order.

    >>> from turnwise.envs.judging.reward import kendall
    >>> [round(kendall(*x), 4) for x in (("3 1 2 0", [3, 2, 1, 0]), ("0 1 2 3", [3, 2, 1, 0]), ("0 1", [1, 0]))]
    [0.6667, -1.0, -1.0]
    >>> scores("The second.\\nanswer: 4 12 -1", 3), scores("4 2", 3), parts(8, 3), parts(1, 3)
    ([0.4, 1.0, 0.0], [0.0, 0.0, 0.0], [3, 3, 2], [1])

    Raises:
        RecipeError: no attempt is scored, or more are at a time than have names.
        EngineError: the policy cannot be reached.
    """
    if not 1 <= together <= MOST:
        raise RecipeError(f"judge 'urpo': together={together}.", f"Give 1 to {MOST} attempts.")
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        counted, told = counting(group), list(group)
        found = {i: part_total(group[i].trajectory.turns, "outcome") for i in counted}
        shown = {
            i: attempt
            for i in counted
            if group[i].task.env not in checked and (attempt := attempt_of(group[i]))
        }
        order, sizes = [*shown], parts(len(shown), together)
        starts = [sum(sizes[:n]) for n in range(len(sizes))]
        asked = [order[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        questions = [_question([shown[i] for i in some]) for some in asked]
        answers = await ask(judge, questions, system=JudgingEnv.system)
        for some, answer in zip(asked, answers, strict=True):
            found |= dict(zip(some, scores(answer, len(some)), strict=True))
        for i in counted:
            told[i] = with_signals(group[i], [{"self_score": found[i]}] * len(group[i].trajectory.turns))
        judged.append(told)
    return judged


def _question(attempts: Sequence[Recorded]) -> str:
    return how_well([AttemptPart(one, len(one.turns)) for one in attempts])


def parts(attempts: int, together: int) -> list[int]:
    """The sizes of as few parts as may be, none of which is larger than another by more than one."""
    number = ceil(attempts / together)
    return [attempts // number + (n < attempts % number) for n in range(number)]


def scores(answer: str, attempts: int) -> list[float]:
    """The scores of so many attempts, from 0 to 1; an answer that has words, as the question does, says nothing."""
    told = said(answer)
    found = numbers(told)
    if len(found) != attempts or _WORD.search(told):
        return [0.0] * attempts
    return [min(1.0, max(0.0, x / HIGHEST)) for x in found]
