"""Chance at one turn alone: a group parts at one turn, and all else is what the policy finds likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from turnwise.agents.core import History, Policy, Reply
from turnwise.agents.policies.model import ModelPolicy
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer, only_read
from turnwise.trainers.guide.exits import lost
from turnwise.trainers.guide.rows import MarkedPolicy
from turnwise.trainers.strategy.runner import TurnPoint

MARK = "guide/tempflow"


@dataclass
class OnceByChance:
    """Draws the first turn that is not yet there by chance, and takes the likeliest token in all later ones."""

    name: str
    chance: Policy
    greedy: Policy

    @property
    def version(self) -> int:
        return self.chance.version

    async def act(self, history: History) -> Reply:
        drawn = any(turn.reply.source != MARK for turn in history.turns)
        return await (self.greedy if drawn else self.chance).act(history)

    def close(self) -> None:
        """The maker of the two policies closes them."""


@component("guide", "tempflow", paper="2508.04324", only_read=True)
class TempFlow:
    """Plays each task once without chance, goes back to one turn of that, draws it anew for every row, and goes on without chance.

    TempFlow-GRPO (He et al. 2025): where a single step is drawn and all others follow from it, differences of the outcome are that step's. The turn is
    drawn evenly from those of the episode that was played greedily (temperature 0). The rows' other turns are read and not learned, so
    that a group's advantages, `credit: dr_grpo`, are those of the one turn's alternatives. The second half, weights by what
    there is to choose at a turn, is the shape `tempflow`. Chance of the environment goes on as it likes. Nothing is played before this guide.

    It changes the objective: to what a turn that is drawn is worth where no other one is.

    Worked by hand: of each row one turn is learned, of both the same.

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(TempFlow(), "shop/quick", groups=1, size=2)
    >>> learned = [[turn.weight for turn in episode.trajectory.turns] for episode in guided[0]]
    >>> [sum(weights) for weights in learned], learned[0].index(1) == learned[1].index(1)
    ([1.0, 1.0], True)
    """

    instead = True

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """The groups, each of which parts at one turn."""
        sampling = player.model.sampling._replace(temperature=0.0)
        greedy = MarkedPolicy(MARK, ModelPolicy(player.model.engine, player.renderer, sampling))
        stems = await player({n: group[:1] for n, group in enumerate(groups)}, greedy)
        at = {
            n: TurnPoint(one, player.rng(n).randrange(max(1, len(one.trajectory.turns))))
            for n, (one,) in stems.items()
        }
        points = dict(zip(at, await player.moments([*at.values()]), strict=True))
        starts = {n: [point] * len(groups[n]) for n, point in points.items() if point is not None}
        played = await player.go_on(starts, OnceByChance(MARK, player.policy, greedy))
        rows = [played.get(n) or [lost(*stems[n])] * len(group) for n, group in enumerate(groups)]
        return [[only_read(one) for one in every] for every in rows]

    def state(self) -> PartState:
        """Nothing."""
        return PartState()

    def restore(self, state: PartState) -> None:
        """There is nothing to go on with."""
