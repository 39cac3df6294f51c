"""RLPT: a model says of a reply that was hidden whether it goes on as the agent said, by its sense."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.judging.actions import said
from turnwise.envs.judging.tasks import ENV
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.judge.rlbff import answered
from turnwise.trainers.kit.asking import ask, counting, judge_policy, quoted
from turnwise.trainers.kit.forms import YES_OR_NO
from turnwise.trainers.kit.reward_edits import part_total, with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave

ASKS = ("next", "middle")
"""The questions of turnwise/Judging-v0 about a reply that was hidden."""
QUESTION = """\
A part of a text was hidden, and somebody was asked how it goes on there.

=== What was shown
{shown}

=== How it truly goes on
{truth}

=== What was said
{said}

Is what was said how the true text begins, by its sense? Other words may say the same, and it may end earlier than the true text; it may not
say anything that the true text does not say there. Explain in a few sentences. Then end with one line: `ANSWER: yes` or `ANSWER: no`."""


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"goes_on": (wave(p) > 0) * turns_of(p)}


@component("judge", "rlpt", gives=("goes_on",), stand_in=_stand_in)
async def rlpt(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """1 on every turn where a model finds that a hidden reply begins with what was said, by its sense; 0 where not.

    RLPT: a generative reward model gets the prediction and the true continuation, of several segments so that one who cuts them otherwise is not
    punished, and r = 1 where the prediction is a semantic prefix of it. Asked about are episodes of ``judging/next`` (the next segment, ASR) and
    ``judging:middle:`` (a masked one, MSR), whose own reward goes by words; all others keep what the world paid as outcome. An empty
    answer is not asked about and has 0. J = E_ASR[r] + λ·E_MSR[r] is a mixture,
    `suite: {judging/next: 1, "judging:middle:": λ}`, paid alone by `reward: {name: own_probability, signal: goes_on, weight: 1, format: 0}`.
    Left out: a judge that is trained, and the cold start, which is a run by `nll` before.

    Worked by hand: r of 1, 0, 1, 1 and of 0, 1 at λ = ½, over a sum of weights of 1½.

    >>> next_segment, middle_segment, weight = [1, 0, 1, 1], [0, 1], 0.5
    >>> sum(next_segment) / 4 + weight * sum(middle_segment) / 2
    1.0

    Raises:
        EngineError: the policy cannot be reached.
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        counted, told = counting(group), list(group)
        found = {i: part_total(group[i].trajectory.turns, "outcome") for i in counted}
        asked = {i: text for i in counted if hides_a_reply(group[i]) and (text := prediction(group[i]))}
        questions = [_question(group[i], text) for i, text in asked.items()]
        verdicts = map(answered, await ask(judge, questions, form=YES_OR_NO))
        found |= dict.fromkeys((i for i in counted if hides_a_reply(group[i])), 0.0)
        found |= dict(zip(asked, verdicts, strict=True))
        for i in counted:
            told[i] = with_signals(group[i], [{"goes_on": found[i]}] * len(group[i].trajectory.turns))
        judged.append(told)
    return judged


def hides_a_reply(episode: Episode) -> bool:
    """Say whether the task asks for a reply that was hidden."""
    return episode.task.env == ENV and episode.task.options["ask"] in ASKS


def prediction(episode: Episode) -> str:
    """The answer of an episode."""
    return said(episode.trajectory.turns[-1].action.content)


def _question(episode: Episode, answer: str) -> str:
    truth = " ".join(episode.task.options["truth"]["words"])
    return QUESTION.format(shown=quoted(episode.task.prompt), truth=quoted(truth), said=quoted(answer))
