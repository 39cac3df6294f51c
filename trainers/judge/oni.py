"""ONI: a model says once of each observation whether it is progress, and what is seen again and again pays less."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.asking import ask, counting, judge_policy, quoted
from turnwise.trainers.kit.reward_edits import with_signals

QUESTION = """\
An agent works at this task:

{task}

The environment answered to one of its turns:

{caption}

Does this answer show progress towards the task? Reply with one line: `PROGRESS: yes` or `PROGRESS: no`."""
_ANSWER = re.compile(r"^[^\w\n]*PROGRESS:[^\w\n]*(yes|no)\b", re.MULTILINE | re.IGNORECASE)
KEPT = 100_000
"""Labels that are remembered; the oldest go first."""


@component("judge", "oni", gives=("oni",))
class Oni:
    """l(m)/N(m)^``power`` for each turn, m the environment's answer to it, l its label and N how often m was seen in the episode so far.

    A policy labels each distinct answer of a task once, 1 for progress, else 0; labels are kept from update to update, so that its
    cost does not grow with the rollouts, and going in circles pays less and less. ONI, by retrieval:
    r = .1·r_env + .4·l/N is `reward: [{name: from_signal, signal: oni}, {name: weighted, weights: {outcome: 0.1, oni: 0.4}}]`. Ours: the labels are
    waited for, where theirs come later and count 0 until then; a label is of a task. Left out: a model trained on the labels, and rankings.

    Worked by hand: seen four times, and twice.

    >>> decayed(["a", "b", "a", "a", "a", "b"], {"a": 1, "b": 1}, 1.0)
    [1.0, 1.0, 0.5, 0.3333333333333333, 0.25, 0.5]
    >>> KEPT
    100000

    Raises:
        RecipeError: ``power`` is below 0.
    """

    def __init__(self, *, policy: str = "openai:judge", power: float = 1.0) -> None:
        if power < 0:
            raise RecipeError(f"judge 'oni': power={power:g} pays repetition more.", "Give 0 or more (1).")
        self.policy, self.power = policy, power
        self.labels: dict[str, int] = {}

    async def __call__(self, groups: Sequence[Group]) -> list[Group]:
        seen = [[captions(one) for one in group] for group in groups]
        new: dict[str, str] = {}
        for group, told in zip(groups, seen, strict=True):
            for i in counting(group):
                for caption in told[i]:
                    name = _name(group[i], caption)
                    if name not in self.labels and caption.strip():
                        new[name] = QUESTION.format(task=group[i].task.prompt, caption=quoted(caption))
        if new:
            answers = await ask(judge_policy(self.policy), [*new.values()])
            self.labels |= {name: labelled(answer) for name, answer in zip(new, answers, strict=True)}
            self.labels = dict([*self.labels.items()][-KEPT:])
        return [
            [self._told(one, told[i]) if i in counting(group) else one for i, one in enumerate(group)]
            for group, told in zip(groups, seen, strict=True)
        ]

    def _told(self, episode: Episode, told: Sequence[str]) -> Episode:
        labels = {caption: self.labels.get(_name(episode, caption), 0) for caption in told}
        return with_signals(episode, [{"oni": x} for x in decayed(told, labels, self.power)])

    def state(self) -> PartState:
        return PartState({"labels": {**self.labels}})

    def restore(self, state: PartState) -> None:
        kept: Any = state.numbers["labels"]
        self.labels = {str(name): int(label) for name, label in kept.items()}


def captions(episode: Episode) -> list[str]:
    """Return what the environment answered to each turn."""
    turns, final = episode.trajectory.turns, episode.trajectory.final
    after = [*(turn.observation for turn in turns[1:]), final][: len(turns)]
    return ["\n".join(message.content for message in messages) for messages in after]


def decayed(told: Sequence[str], labels: dict[str, int], power: float) -> list[float]:
    """The label of each caption, over a power of how often it came up so far."""
    count: Counter[str] = Counter()
    found: list[float] = []
    for caption in told:
        count[caption] += 1
        found.append(labels[caption] / count[caption] ** power)
    return found


def labelled(answer: str) -> int:
    """1 where the last line of its kind says yes, else 0."""
    said = _ANSWER.findall(answer)
    return int(bool(said) and said[-1].lower() == "yes")


def _name(episode: Episode, caption: str) -> str:
    return hashlib.sha256(f"{episode.task.id} {caption}".encode()).hexdigest()[
        :16
    ]  # checkpoints carry all of them
