"""Budgets that are said: every episode is told how much it may say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import told_by_seed

SAID = "Use at most {budget} {unit} in all."


@component("guide", "length_budget", paper="2508.08940")
class SaidBudget:
    """Plays every episode, told in the prompt how many tokens or turns it may use in all; learned as told.

    Train Long, Think Short (Hammoud et al. 2025) states the budget that the reward `length_budget` pays for, and lowers both together:
    `schedule: {guide.length_budget.budget: decay, reward.length_budget.budget: decay}`. A budget is rounded, and is 1 or more. Nothing is played
    before this guide. Where the policy is evaluated nothing is said, as with all guides: ours.

    It changes the objective: tasks are trained under other prompts than they are evaluated under.

    Worked by hand with the paper's numbers, 256 tokens · 0.7³ after 300 updates:

    >>> SaidBudget(budget=256 * 0.7**3).said
    'Use at most 88 tokens in all.'
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(SaidBudget(), "shop/quick", groups=1, size=2)
    >>> {turn.reply.source for episode in guided[0] for turn in episode.trajectory.turns}
    {'guide/length_budget'}

    Raises:
        RecipeError: the budget is not above 0.
    """

    instead = True

    def __init__(self, *, budget: float = 256.0, unit: Literal["tokens", "turns"] = "tokens") -> None:
        if budget <= 0:
            raise RecipeError(f"guide 'length_budget': budget={budget:g}.", "Set it above 0.")
        self.said = SAID.format(budget=max(1, round(budget)), unit=unit)

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Play the groups under the budget."""
        asked = player.requests(dict(enumerate(groups)))
        told = {one.seed: self.said for every in asked.values() for one in every}
        played = await player.play(asked, told_by_seed(player, "guide/length_budget", told, keeps=True))
        return [played[n] for n in range(len(groups))]

    def state(self) -> PartState:
        """Nothing."""
        return PartState()

    def restore(self, state: PartState) -> None:
        """There is nothing to go on with."""
