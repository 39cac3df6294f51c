"""A rule first, and a model where the rule says no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from turnwise.registry import component
from turnwise.tasks.core import Json, Task
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.judge.rlbff import answered
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.forms import YES_OR_NO
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave

QUESTION = """\
Below is an attempt of an agent at a task. A rule did not accept it; rules reject what is right in other words.

{transcript}
{answer}
Is what the agent ends with right? Explain in a few sentences. Then end with one line: `ANSWER: yes` or `ANSWER: no`."""


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"right": (wave(p) > 0) * turns_of(p)}


@component("judge", "two_stage", paper="2505.22203", gives=("right",), stand_in=_stand_in)
async def two_stage(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """1 on the last turn of an attempt that the environment calls solved or that a model finds right, 0 on all others.

    Rule or model (Huang et al. 2025): the environment's verdict is the rule, and only what it rejects is asked about, with the task's answer
    where that is a text. What a rule misses because it was said otherwise is found so, at the price of what the model can be talked
    into: `turnwise audit judge two_stage SUITE` says how much, with the book's attacks, and `require` refuses it. Paid in place of the
    outcome by ``reward: {name: own_probability, signal: right, weight: 1, format: 0}``. An answer that is neither yes nor no is no.

    >>> reference_of(Task("x", "Who?", gold={"answers": ["Ann", "Ann Lee"]})), reference_of(Task("x", "Who?", gold=3))
    ('The right answer: Ann; Ann Lee\\n', '')

    Raises:
        EngineError: the policy cannot be reached.
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        counted = counting(group)
        failed = [i for i in counted if not group[i].success]
        questions = [
            QUESTION.format(transcript=transcript(group[i]), answer=reference_of(group[i].task))
            for i in failed
        ]
        found = dict(zip(failed, map(answered, await ask(judge, questions, form=YES_OR_NO)), strict=True))
        told = list(group)
        for i in counted:
            turns = len(group[i].trajectory.turns)
            told[i] = with_signals(
                group[i], [{"right": found.get(i, 1.0) if k == turns - 1 else 0.0} for k in range(turns)]
            )
        judged.append(told)
    return judged


def reference_of(task: Task) -> str:
    """The right answer as the model is told of it; empty where the task has none that is a text."""
    gold: Json = task.gold
    if isinstance(gold, Mapping):
        gold = gold.get("answers", "")
    texts = [gold] if isinstance(gold, str) else gold if isinstance(gold, Sequence) else []
    said = "; ".join(text for text in texts if isinstance(text, str) and text)
    return f"The right answer: {said}\n" if said else ""
