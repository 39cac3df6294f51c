"""Budgets: some episodes are played to their end, and each of them is asked for its answer whenever a budget of turns is used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.exits import TOLD, ExitGuide
from turnwise.trainers.guide.rows import masked
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.strategy.runner import TurnPoint


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    """Trajectories that differ are whole episodes, asked at their ends alone."""
    number_NK = torch.arange(len(p.mask_NK))[:, None] * turns_of(p)
    return {"exit_trunk": number_NK, "exit_at": 0 * number_NK, "exit_segment": 0 * number_NK}


@component(
    "guide",
    "anytime",
    paper="2505.13438",
    gives=("exit_trunk", "exit_at", "exit_segment"),
    stand_in=_stand_in,
)
class Anytime(ExitGuide):
    """Plays whole episodes, and asks each of them ``answers`` times for its answer before the turns that ``budgets`` name.

    AnytimeReasoner (Qi et al. 2025): a thought is cut at S budgets, at each of which some short answers are sampled. Budgets are numbers of turns, and the
    last of the S is the end of the episode, whose own answer is its only one (ours): S = len(``budgets``) + 1. A group of
    G holds G/(1 + (S − 1)·answers) whole episodes, each before its answers. Turns of an episode that its answers begin
    with are read there, and learned once. An episode that ended before a budget has its own end for an answer there, read
    and not learned. ``told`` is said below what is read, and whoever is asked has ``turns`` turns to answer in, before a limit ends the row.

    Gives ``exit_trunk``, the number of the whole episode; ``exit_at``, the number of the budget at which the row ends, from 0; and
    ``exit_segment`` of a whole episode's turns, the number of budgets that they come after, −1 for the turns of an answer. For `credit: brpo`.

    It changes the objective: to answers that are right at any budget, under prompts that no evaluation has.

    Worked by hand with budgets of two and four turns: turns 0 to 5 are of the segments 0, 0, 1, 1, 2, 2.

    >>> [segment_of(k, (2, 4)) for k in range(6)]
    [0, 0, 1, 1, 2, 2]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(Anytime(), "shop/quick", groups=1, size=2)
    >>> [[int(turn.signals["exit_segment"]) for turn in episode.trajectory.turns][:4] for episode in guided[0]]
    [[0, 0, 1, 1], [0, 0, -1]]

    Raises:
        RecipeError: budgets do not grow from 0 on, no answer is asked for, or a group does not hold whole episodes with their answers.
    """

    name = "anytime"

    def __init__(
        self, *, budgets: tuple[int, ...] = (2,), answers: int = 1, told: str = TOLD, turns: int = 1
    ) -> None:
        super().__init__(told, turns)
        if answers < 1 or [*budgets] != sorted({*budgets}) or (budgets and budgets[0] < 0):
            raise RecipeError(
                f"guide 'anytime': answers={answers}, budgets={budgets}.",
                "Give 1 answer or more, and budgets that grow, from 0 turns on.",
            )
        self.budgets, self.answers = budgets, answers

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """The groups: whole episodes, each followed by its answers at each budget."""
        rows = 1 + len(self.budgets) * self.answers
        if wrong := next((len(group) for group in groups if len(group) % rows), 0):
            raise RecipeError(
                f"guide 'anytime' has {rows} rows for each whole episode, which a group of {wrong} does not hold.",
                f"Set rollout.group_size to a multiple of {rows}.",
            )
        trunks = await player(
            {n: group[: len(group) // rows] for n, group in enumerate(groups)}, player.policy
        )
        points = {
            n: [TurnPoint(one, k) for one in every for k in self._asked(one)] for n, every in trunks.items()
        }
        found = {n: iter(every) for n, every in (await self.exits(player, points)).items()}
        return [
            [
                row
                for number, one in enumerate(every)
                for row in self._rows(number, one, [next(found[n]) for _ in self._asked(one)])
            ]
            for n, every in trunks.items()
        ]

    def _asked(self, whole: Episode) -> list[int]:
        """The turns before which an episode is asked, each as often as it is."""
        return [k for k in self.budgets if k < len(whole.trajectory.turns) for _ in range(self.answers)]

    def _rows(self, number: int, whole: Episode, answers: Sequence[Episode]) -> Group:
        """A whole episode and its answers, with their places."""
        ended = masked(whole, lambda k: True)
        missing = len(self.budgets) * self.answers - len(answers)
        rows = [whole, *answers, *(replace(ended) for _ in range(missing))]
        at = [len(self.budgets), *(s for s in range(len(self.budgets)) for _ in range(self.answers))]
        return [self._placed(row, number, s) for row, s in zip(rows, at, strict=True)]

    def _placed(self, row: Episode, number: int, at: int) -> Episode:
        turns = row.trajectory.turns
        told = [bool(turn.reply.source) for turn in turns]
        signals = [
            {
                "exit_trunk": float(number),
                "exit_at": float(at),
                "exit_segment": -1.0 if hurried else float(segment_of(k, self.budgets)),
            }
            for k, hurried in enumerate(told)
        ]
        read = masked(row, lambda k: not told[k]) if any(told) else row
        return with_signals(read, signals)


def segment_of(turn: int, budgets: Sequence[int]) -> int:
    """The number of budgets that are used up before a turn."""
    return sum(budget <= turn for budget in budgets)
