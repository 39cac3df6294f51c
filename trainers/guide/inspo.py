"""INSPO: instructions that compete, each told to some of a group's episodes and weighed by what these earned."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import INSTRUCTIONS, told_by_seed, written
from turnwise.trainers.kit.asking import judge_policy, transcript

QUESTION = """\
Below are an instruction that an agent was given, and attempts under it that failed. Say to yourself why, and write one better instruction of one
to three sentences that would help with any such task. Write the instruction alone.

Instruction:
{instruction}

{attempts}"""


@component("guide", "inspo")
class Inspo:
    """Plays every episode under an instruction of a population, drawn by its weight; learned as told.

    INSPO: a rollout draws I_j with p_j = softmax(w_j/``temperature``), w_j the mean of what episodes under it earned so far (0 for a new one while nothing was; else the mean of all),
    so that a group holds several of them and its baseline is over instructions too. Every ``every`` updates the weaker half goes; with a
    ``writer`` (any policy's spec, or `self` for the policy that is trained) as many new ones are written, each from one that stayed, the best first, and the newest
    ``failures`` attempts that failed. Without one the population halves until one is left. What was never drawn is weaker than what was. Left out: a
    test of what is new on tasks of its own before it joins, and mending two into one. Nothing is played before this guide. Where the policy
    is evaluated nothing is said, as with all guides: put the best one, in the run's state, into `sampling.instruction`.

    It changes the objective: tasks are trained under other prompts than they are evaluated under.

    Worked by hand from the book: the chances of w = .6, .4, .1.

    >>> [[round(p, 4) for p in chances([0.6, 0.4, 0.1], t)] for t in (0.1, 0.5)]
    [[0.8756, 0.1185, 0.0059], [0.4906, 0.3289, 0.1805]]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(Inspo(), "shop/quick", groups=1, size=2)
    >>> {turn.reply.source for episode in guided[0] for turn in episode.trajectory.turns}
    {'guide/inspo'}

    Raises:
        RecipeError: there are no instructions or one stands twice, or an option is not above 0.
    """

    instead = True

    def __init__(
        self,
        *,
        instructions: tuple[str, ...] = INSTRUCTIONS,
        temperature: float = 0.1,
        every: int = 20,
        writer: str = "",
        failures: int = 4,
    ) -> None:
        if not instructions or len({*instructions}) < len(instructions) or not all(instructions):
            raise RecipeError(
                "guide 'inspo': instructions are missing, empty or twice the same.", "Name some, each once."
            )
        if temperature <= 0 or min(every, failures) < 1:
            raise RecipeError(
                f"guide 'inspo': temperature={temperature:g}, every={every}, failures={failures}.",
                "Set all above 0.",
            )
        self.temperature, self.every, self.writer, self.failures = temperature, every, writer, failures
        self.earned: dict[str, tuple[float, int]] = dict.fromkeys(instructions, (0.0, 0))
        self.failed: list[tuple[str, str]] = []
        self.turned = 0

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Renew the population where it is time to; then play each episode under one of it."""
        if player.update >= self.turned + self.every:
            await self._renew(player)
        asked = player.requests(dict(enumerate(groups)))
        texts, chance = [*self.earned], chances(self._weights(), self.temperature)
        told = {
            one.seed: text
            for n, every in asked.items()
            for one, text in zip(every, player.rng(n).choices(texts, chance, k=len(every)), strict=True)
        }
        played = await player.play(asked, told_by_seed(player, "guide/inspo", told, keeps=True))
        for n, every in asked.items():
            for one, episode in zip(every, played[n], strict=True):
                if episode.outcome.counts:
                    self._count(told[one.seed], episode)
        return [played[n] for n in range(len(groups))]

    def _weights(self) -> list[float]:
        total, count = (sum(x) for x in zip(*self.earned.values(), strict=True))
        return [earned / times if times else total / max(1, count) for earned, times in self.earned.values()]

    def _count(self, text: str, episode: Episode) -> None:
        earned, times = self.earned[text]
        self.earned[text] = earned + episode.trajectory.total_reward, times + 1
        if not episode.success:
            self.failed = [*self.failed, (text, transcript(episode))][-self.failures :]

    async def _renew(self, player: GuidePlayer) -> None:
        """Keep the better half, rounded up, and have as many written as went."""
        self.turned = player.update
        of = dict(zip(self.earned, self._weights(), strict=True))
        order = sorted(of, key=lambda text: (self.earned[text][1] > 0, of[text]), reverse=True)
        stay = order[: (len(order) + 1) // 2]
        asked = {
            i: QUESTION.format(
                instruction=stay[i % len(stay)], attempts="\n\n".join(said for _, said in self.failed)
            )
            for i in range(len(order) - len(stay))
        }
        new = dict[int, str]()
        if self.writer and self.failed:
            policy = player.policy if self.writer == "self" else judge_policy(self.writer)
            new = await written(policy, asked, player.update)
        self.earned = {text: self.earned[text] for text in stay}
        for text in filter(None, new.values()):
            self.earned.setdefault(text, (0.0, 0))

    def state(self) -> PartState:
        """The population with what it earned, and the newest failures."""
        earned = [[text, *sums] for text, sums in self.earned.items()]
        return PartState({"earned": earned, "failed": [[*one] for one in self.failed], "turned": self.turned})

    def restore(self, state: PartState) -> None:
        """Go on with this population."""
        kept: Any = state.numbers
        self.earned = {str(text): (float(earned), int(times)) for text, earned, times in kept["earned"]}
        self.failed = [(str(text), str(said)) for text, said in kept["failed"]]
        self.turned = int(kept["turned"])


def chances(weights: Sequence[float], temperature: float) -> list[float]:
    """softmax(w/τ)."""
    most = max(weights)
    scaled = [exp((w - most) / temperature) for w in weights]
    return [x / sum(scaled) for x in scaled]
