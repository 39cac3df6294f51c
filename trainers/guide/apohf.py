"""APOHF: instructions that are chosen by comparisons alone, two of them in each group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, sqrt
from statistics import mean
from typing import Any

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import INSTRUCTIONS, told_by_seed
from turnwise.trainers.judge.tournament import compared
from turnwise.trainers.kit.asking import judge_policy
from turnwise.trainers.kit.bounds import not_below_zero

Vector = Sequence[float]
Pairs = Mapping[tuple[int, int], int]
"""Counts by pair: the first of two instructions was preferred to the second so often."""
STEPS = 200
"""Of gradient descent; the loss is smooth and convex, and each step is as long as it may be."""


@component("guide", "apohf")
class Apohf:
    """Plays the first half of each group under one instruction and the rest under another; learns which is better; learned as told.

    APOHF: prompts are chosen by preferences alone. h(x) is the worth of an instruction, fitted by −log σ(h(better) − h(worse)) over all comparisons with ``decay`` = λ. In each
    update the first arm is the best by h, and the second the best by h(x) + √(``exploration``·Σ_d (x_d − x1_d)²/U_d), U_d = Σ over comparisons of (x_d − x'_d)² + λ; they
    may be the same. Until there are ``starts`` comparisons two are drawn. Each group is a comparison: of its first episodes under
    either, by a ``judge``'s points in both orders (any policy's spec, or `self`), or without one of the means that both halves were paid; a tie
    says nothing. Here h is linear in the words of an instruction, of length 1 (the book's form; the paper's is a small network over embeddings,
    whose gradients stand for x). Nothing is played before this guide. Evaluations are told nothing: put the best instruction into `sampling.instruction`.

    It changes the objective: tasks are trained under other prompts than they are evaluated under.

    Worked by hand from the book: three instructions, the first two of which were compared once; the second is the first arm, the first the second; and what
    a comparison of .7 with .4 costs.

    >>> [round(i, 4) for i in indices([[1, 0], [0, 1], [0.6, 0.8]], [0.4, 0.7, 0.5], {(0, 1): 1}, 1.0, 0.1)]
    [1.7484, 0.7, 1.103]
    >>> [round(i, 4) for i in indices([[1, 0], [0, 1], [0.6, 0.8]], [0.4, 0.7, 0.5], {(0, 1): 2}, 1.0, 0.1)]  # compared twice
    [1.3759, 0.7, 0.9364]
    >>> from math import log
    >>> round(preference(0.7 - 0.4), 4), round(-log(preference(0.7 - 0.4)), 4)
    (0.5744, 0.5544)
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(Apohf(), "shop/quick", groups=1, size=2)
    >>> {turn.reply.source for episode in guided[0] for turn in episode.trajectory.turns}
    {'guide/apohf'}

    Raises:
        RecipeError: there are fewer than two instructions or one stands twice, an option is below 0, or the decay is 0.
    """

    instead = True

    def __init__(
        self,
        *,
        instructions: tuple[str, ...] = INSTRUCTIONS,
        exploration: float = 1.0,
        decay: float = 0.1,
        starts: int = 5,
        judge: str = "",
    ) -> None:
        not_below_zero("guide 'apohf'", exploration=exploration, decay=decay, starts=starts)
        if len({*instructions}) < max(2, len(instructions)) or not all(instructions) or not decay:
            raise RecipeError(
                f"guide 'apohf': decay={decay:g}, {len(instructions)} instructions.",
                "Set the decay above 0, and name two instructions or more, each once.",
            )
        self.instructions, self.judge = instructions, judge
        self.exploration, self.decay, self.starts = exploration, decay, starts
        self.words = _vectors(instructions)
        self.preferred = Counter[tuple[int, int]]()

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Play each group under both arms, and remember which was better there."""
        arms = self._arms(player)
        asked = player.requests(dict(enumerate(groups)))
        told = {
            one.seed: self.instructions[arms[i >= _half(every)]]
            for every in asked.values()
            for i, one in enumerate(every)
        }
        played = await player.play(asked, told_by_seed(player, "guide/apohf", told, keeps=True))
        if arms[0] != arms[1]:
            for lead in await self._leads(player, [*played.values()]):
                if lead:
                    self.preferred[arms if lead > 0 else (arms[1], arms[0])] += 1
        return [played[n] for n in range(len(groups))]

    def _arms(self, player: GuidePlayer) -> tuple[int, int]:
        if self.preferred.total() < self.starts:
            one, other = player.rng_of_update().sample(range(len(self.instructions)), 2)
            return one, other
        worth = worths(self.words, self.preferred, self.decay)
        index = indices(self.words, worth, self.preferred, self.exploration, self.decay)
        return worth.index(max(worth)), index.index(max(index))

    async def _leads(self, player: GuidePlayer, played: Sequence[Sequence[Episode]]) -> list[float]:
        """Of each group, by how much its first half is better than the second; 0 where there is nothing to compare."""
        halves = [
            [[e for e in part if e.outcome.counts] for part in (one[: _half(one)], one[_half(one) :])]
            for one in played
        ]
        both = [(first, second) for first, second in halves if first and second]
        if not self.judge:
            return [_paid(first) - _paid(second) for first, second in both]
        policy = player.policy if self.judge == "self" else judge_policy(self.judge)
        return [a - b for a, b in await compared(policy, [(first[0], second[0]) for first, second in both])]

    def state(self) -> PartState:
        """Counts by pair, the preferred instruction first."""
        return PartState({"preferred": [[*pair, times] for pair, times in self.preferred.items()]})

    def restore(self, state: PartState) -> None:
        """Go on with these comparisons."""
        kept: Any = state.numbers["preferred"]
        self.preferred = Counter({(int(better), int(worse)): int(times) for better, worse, times in kept})


def worths(words: Sequence[Vector], preferred: Pairs, decay: float) -> list[float]:
    """h of each instruction where the mean cost of the comparisons and λ/2·|w|² are least together."""
    w, total = [0.0] * len(words[0]), sum(preferred.values())
    step = 1 / (decay + 0.5)  # no second slope is greater: words have length 1
    for _ in range(STEPS):
        slope = [decay * x for x in w]
        for (better, worse), times in preferred.items():
            apart = [a - b for a, b in zip(words[better], words[worse], strict=True)]
            pull = times / total * preference(-_dot(w, apart))
            slope = [s - pull * d for s, d in zip(slope, apart, strict=True)]
        w = [x - step * s for x, s in zip(w, slope, strict=True)]
    return [_dot(w, x) for x in words]


def indices(
    words: Sequence[Vector], worth: Vector, preferred: Pairs, exploration: float, decay: float
) -> list[float]:
    """Upper bounds of what each instruction is worth beside the best, the less sure the higher."""
    best = words[[*worth].index(max(worth))]
    known = [
        decay + sum(times * (words[i][d] - words[j][d]) ** 2 for (i, j), times in preferred.items())
        for d in range(len(best))
    ]
    return [
        h + sqrt(exploration * sum((a - b) ** 2 / u for a, b, u in zip(x, best, known, strict=True)))
        for h, x in zip(worth, words, strict=True)
    ]


def preference(apart: float) -> float:
    """σ, the chance that one is preferred that is worth so much more."""
    return 1 / (1 + exp(-apart))


def _dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _half(group: Sequence[object]) -> int:
    return (len(group) + 1) // 2


def _paid(episodes: Sequence[Episode]) -> float:
    return mean(one.trajectory.total_reward for one in episodes)


def _vectors(texts: Sequence[str]) -> list[list[float]]:
    """The words of each text, of length 1."""
    said = [{*re.findall(r"\w+", text.lower())} for text in texts]
    every = sorted(set[str]().union(*said))
    return [[(word in words) / sqrt(max(1, len(words))) for word in every] for words in said]
