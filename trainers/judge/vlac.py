"""A language model that says how much progress each turn made, from what was seen before it and after it."""

import re
from collections.abc import Sequence

from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.messages import Messages
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, quoted
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave

QUESTION = """\
An agent works at this task:
{task}

=== Seen before
{before}

=== Done
{act}

=== Seen after
{after}

How much of what was left of the task did this bring? 100 is all of it, 0 nothing, -100 that all is lost. End with one line: `PROGRESS: n`."""


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"gain": 0.3 * wave(p) * turns_of(p)}


@component("judge", "vlac", paper="2509.15937", gives=("gain",), stand_in=_stand_in)
async def vlac(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """A policy compares what was seen before and after each turn; ``gain`` is the rise of the value that follows, over 100.

    It says δ in [−100, 100] per cent, and the value goes from v to v + (100 − v)·δ/100, from 0 on: what is left is what counts, and a step back is
    negative. VLAC (Zhai et al. 2025). `reward: {name: from_signal, signal: gain}` pays it; the gains of an episode sum to its last value. A
    question a turn; one that cannot be answered has δ = 0. `turnwise audit log` has value-order correlation and negative rate. Left out: its
    signal that the task is done, pictures.

    Worked by hand: δ = 20, 30, −10, 50 lead to 20, 44, 38.4 and 69.2.

    >>> [round(x, 3) for x in gains([20, 30, -10, 50])]
    [0.2, 0.24, -0.056, 0.308]
    >>> progress("Nearer.\\nPROGRESS: -12.5 %"), progress("PROGRESS: 250"), progress("none")
    (-12.5, 0.0, 0.0)
    """
    judge = judge_policy(policy)
    judged: list[Group] = []
    for group in groups:
        asked, told = counting(group), list(group)
        questions = [_questions(group[i]) for i in asked]
        answers = iter(await ask(judge, [one for some in questions for one in some]))
        for i, some in zip(asked, questions, strict=True):
            found = gains([progress(next(answers)) for _ in some])
            told[i] = with_signals(group[i], [{"gain": gain} for gain in found])
        judged.append(told)
    return judged


def _questions(episode: Episode) -> list[str]:
    turns = episode.trajectory.turns
    seen = [*(turn.observation for turn in turns), episode.trajectory.final]
    return [
        QUESTION.format(
            task=quoted(episode.task.prompt), before=_text(seen[k]), act=quoted(str(turn.action)), after=_text(seen[k + 1])
        )
        for k, turn in enumerate(turns)
    ]  # fmt: skip


def _text(observation: Messages) -> str:
    return quoted("\n".join(message.content for message in observation if message.role != "system"))


def gains(progress: Sequence[float]) -> list[float]:
    """The rise of the value at each turn, over 100, of progress in per cent of what is left."""
    value, found = 0.0, list[float]()
    for delta in progress:
        after = value + (100 - value) * delta / 100
        found.append((after - value) / 100)
        value = after
    return found


def progress(answer: str) -> float:
    """The progress in per cent, according to the judge's answer; 0 where it gives none, or more than all."""
    found = re.findall(
        r"^[^\w\n]*PROGRESS:[ \t]*([-−+]?\d{1,4}(?:\.\d{1,4})?)", answer, re.MULTILINE | re.IGNORECASE
    )
    value = float(found[-1].replace("−", "-")) if found else 0.0
    return value if abs(value) <= 100 else 0.0
