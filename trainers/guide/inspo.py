"""INSPO: instructions that compete, each told to some of a group's episodes and weighed by what these earned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from turnwise.agents.core import Episode
from turnwise.agents.rollout import Request
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import INSTRUCTIONS, told_by_seed, written
from turnwise.trainers.kit.asking import judge_policy, transcript

QUESTION = """\
Below are an instruction that an agent was given, and attempts under it or others that failed. Say to yourself why, and write one better
instruction of one to three sentences that would help with any such task. Write the instruction alone.

Instruction:
{instruction}

{attempts}"""


@component("guide", "inspo")
class Inspo:
    """Plays every episode under an instruction of a population, drawn by its weight; learned as told.

    INSPO: an episode draws the instruction I_j with p_j = softmax(w_j/``temperature``), so that a group holds several and its baseline is over
    instructions too. w_j is the mean of what the world paid episodes under it (the book's assumption), or of all episodes for one that was
    never drawn. Every ``every`` updates the weaker half goes. With a ``writer``, any policy's spec or `self` for the one that is
    trained, as many new ones are written: each from one that stayed, the best first, and the newest ``failures`` attempts
    that failed. A new one is played once on each of the first ``proxy`` tasks of the update, and joins with what it earned there,
    unless the best that went had earned more (0: it joins untested). Without a writer the population halves until one is left. Nothing is
    played before this guide. Evaluations are told nothing: put the best instruction, from the run's state, into `sampling.instruction`.

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
        proxy: int = 4,
    ) -> None:
        if not instructions or len({*instructions}) < len(instructions) or not all(instructions):
            raise RecipeError(
                "guide 'inspo': instructions are missing, empty or twice the same.", "Name some, each once."
            )
        if temperature <= 0 or min(every, failures) < 1 or proxy < 0:
            raise RecipeError(
                f"guide 'inspo': temperature={temperature:g}, every={every}, failures={failures}, proxy={proxy}.",
                "Set all above 0; proxy may be 0.",
            )
        self.temperature, self.every, self.writer = temperature, every, writer
        self.failures, self.proxy = failures, proxy
        self.earned: dict[str, tuple[float, int]] = dict.fromkeys(instructions, (0.0, 0))
        self.failed: list[str] = []
        self.turned = 0

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Renew the population where it is time to; then play each episode under one of it."""
        if player.update >= self.turned + self.every:
            await self._renew(player, groups)
        asked = player.requests(dict(enumerate(groups)))
        texts, chance = [*self.earned], chances(self._weights(), self.temperature)
        told = {n: player.rng(n).choices(texts, chance, k=len(every)) for n, every in asked.items()}
        played = await self._play(player, asked, told)
        return [played[n] for n in range(len(groups))]

    async def _play(
        self, player: GuidePlayer, asked: Mapping[int, Sequence[Request]], told: Mapping[int, Sequence[str]]
    ) -> dict[int, list[Episode]]:
        """Play these episodes, each told its instruction, and count what they earned."""
        texts = {one.seed: text for n in asked for one, text in zip(asked[n], told[n], strict=True)}
        played = await player.play(asked, told_by_seed(player, "guide/inspo", texts, keeps=True))
        for n in asked:
            for text, episode in zip(told[n], played[n], strict=True):
                if not episode.outcome.counts:
                    continue
                earned, times = self.earned[text]
                self.earned[text] = earned + episode.trajectory.total_reward, times + 1
                if not episode.success:
                    self.failed = [*self.failed, transcript(episode)][-self.failures :]
        return played

    def _weights(self) -> list[float]:
        total, count = (sum(x) for x in zip(*self.earned.values(), strict=True))
        return [earned / times if times else total / max(1, count) for earned, times in self.earned.values()]

    async def _renew(self, player: GuidePlayer, groups: Sequence[Group]) -> None:
        """Keep the better half, rounded up, and let new ones join that are no worse than those that went."""
        self.turned = player.update
        of = dict(zip(self.earned, self._weights(), strict=True))
        order = sorted(of, key=lambda text: (self.earned[text][1] > 0, of[text]), reverse=True)
        stay, went = order[: (len(order) + 1) // 2], order[(len(order) + 1) // 2 :]
        new = [text for text in await self._written(player, stay, len(went)) if text not in stay]
        self.earned = {text: self.earned[text] for text in stay} | dict.fromkeys(new, (0.0, 0))
        if new and self.proxy:
            first = {n: [group[0]] * len(new) for n, group in enumerate(groups[: self.proxy])}
            await self._play(player, player.requests(first), dict.fromkeys(first, new))
            least = max(of[text] for text in went)
            self.earned = {
                text: (earned, times)
                for text, (earned, times) in self.earned.items()
                if text in stay or (times and earned / times >= least)
            }

    async def _written(self, player: GuidePlayer, stay: Sequence[str], number: int) -> list[str]:
        """So many new instructions, or fewer where two are the same or one says nothing."""
        if not (self.writer and self.failed):
            return []
        policy = player.policy if self.writer == "self" else judge_policy(self.writer)
        attempts = "\n\n".join(self.failed)
        asked = {
            i: QUESTION.format(instruction=stay[i % len(stay)], attempts=attempts) for i in range(number)
        }
        said = await written(policy, asked, player.update)
        return [*dict.fromkeys(text for text in said.values() if text)]

    def state(self) -> PartState:
        """The population with what it earned, and the newest failures."""
        earned = [[text, *sums] for text, sums in self.earned.items()]
        return PartState({"earned": earned, "failed": [*self.failed], "turned": self.turned})

    def restore(self, state: PartState) -> None:
        """Go on with this population."""
        kept: Any = state.numbers
        self.earned = {str(text): (float(earned), int(times)) for text, earned, times in kept["earned"]}
        self.failed = [str(said) for said in kept["failed"]]
        self.turned = int(kept["turned"])


def chances(weights: Sequence[float], temperature: float) -> list[float]:
    """softmax(w/τ)."""
    most = max(weights)
    scaled = [exp((w - most) / temperature) for w in weights]
    return [x / sum(scaled) for x in scaled]
