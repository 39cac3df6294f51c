"""EPO: a model names the turns of a strategist that were critical, and the last one bears the outcome."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, transcript
from turnwise.trainers.kit.forms import CRITICAL_TURNS
from turnwise.trainers.kit.reward_edits import part_total, with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave

QUESTION = """\
Below is how a task went, and what was said at each turn. In the end it was worth {outcome:.2f}.

{transcript}

Which turns were critical: without what was said there, it would not have come so far? Explain in a few sentences. \
Then end with one line: `CRITICAL: ` and the numbers of the critical turns, or `CRITICAL: none`."""


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"critical": (wave(p) > 0) * turns_of(p)}


@component("judge", "epo_strategic", paper="2502.12486", gives=("critical",), stand_in=_stand_in)
async def epo_strategic(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """1 on each turn that a policy calls critical, the outcome on the last turn, 0 on all others.

    EPO (Liu et al. 2025): a process reward model reads a dialogue with its outcome and picks the turns by which it came so far; the outcome
    is the score of the end, from 0 to 1. They are read as the first agent saw them, which in ``advised:SUITE`` is the strategist, and are paid in place of all else by
    `reward: [{name: from_signal, signal: critical}, {name: weighted, weights: {critical: 1}}]` with `credit: epo_strategic`, `loss: [nll]`. An answer
    that cannot be read names none.

    Worked by hand: four turns, the second critical, an outcome of .8.

    >>> paid("It asked.\\nCRITICAL: 2, 4, 9", 4, 0.8), paid("CRITICAL: none", 2, 0.0)
    ([0.0, 1.0, 0.0, 0.8], [0.0, 0.0])
    >>> from turnwise.trainers.credit import epo_strategic as credit
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(credit.epo_strategic(turn_batch([[0, 1, 0, 0.8]])), 4)
    [[0.99, 1.0, 0.4439, 0.4484]]

    Raises:
        EngineError: the policy cannot be reached.
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        counted, told = counting(group), list(group)
        outcome = {i: part_total(group[i].trajectory.turns, "outcome") for i in counted}
        questions = [QUESTION.format(outcome=outcome[i], transcript=transcript(group[i])) for i in counted]
        for i, answer in zip(counted, await ask(judge, questions, form=CRITICAL_TURNS), strict=True):
            earned = paid(answer, len(group[i].trajectory.turns), outcome[i])
            told[i] = with_signals(group[i], [{"critical": x} for x in earned])
        judged.append(told)
    return judged


def paid(answer: str, turns: int, outcome: float) -> list[float]:
    """Pay of so many turns by an answer, and by the outcome on the last."""
    lines = re.findall(r"^[^\w\n>]*CRITICAL:[^\w\n]*(none\b|\d[\d, ]*)", answer, re.MULTILINE | re.IGNORECASE)
    named = {int(n) for n in re.findall(r"\d{1,6}", lines[-1])} if lines else set[int]()
    return [*(float(k in named) for k in range(1, turns)), outcome]
