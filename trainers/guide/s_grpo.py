"""Serial groups: one episode is played to its end, and the others leave it at chance moments and answer at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.exits import TOLD, ExitGuide
from turnwise.trainers.strategy.runner import TurnPoint


@component("guide", "s_grpo", paper="2505.07686", shared_turns=True)
class SGRPO(ExitGuide):
    """Plays one episode of each task; all other rows of its group leave that one before chance turns, told to answer now.

    S-GRPO (Dai et al. 2025): a whole thought is cut at m random points, where a text that the time is up makes the policy answer;
    the group is these answers, the earliest first, and the whole one last. Here a group of G has m = G − 1 exits, each before a turn that is
    drawn evenly from those of the whole episode: a thought within a turn is not cut. Whoever has left has ``turns`` turns to answer in, and then
    a limit ends the episode; ``told`` is said below what is read, and these turns are learned under it. Rows share the turns before
    they leave, and each of them teaches these, so the credit rule must allow for it: `credit: s_grpo`, which pays early
    right exits the most. Nothing is played before this guide.

    It changes the objective: to answers that are right early, under prompts that no evaluation has.

    Worked by hand: a thought of five turns of which four exits leave before turns 0, 1, 2 and 3.

    >>> import random
    >>> before(5, 4, random.Random(4))
    [0, 1, 2, 3]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(SGRPO(), "shop/quick", groups=1, size=2)
    >>> [[turn.reply.source for turn in episode.trajectory.turns][-1] for episode in guided[0]]
    ['guide/s_grpo', '']

    Raises:
        RecipeError: no turn is left to answer in, or nothing is said.
    """

    name = "s_grpo"

    def __init__(self, *, told: str = TOLD, turns: int = 1) -> None:
        super().__init__(told, turns)

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """The groups, each of which is one episode and exits from it."""
        whole = await player({n: group[:1] for n, group in enumerate(groups)}, player.policy)
        points = {
            n: [
                TurnPoint(one, k)
                for k in before(len(one.trajectory.turns), len(groups[n]) - 1, player.rng(n))
            ]
            for n, (one,) in whole.items()
        }
        left = await self.exits(player, points)
        return [[*left[n], *whole[n]] for n in range(len(groups))]


def before(T: int, exits: int, rng: Random) -> list[int]:
    """The turns before which an episode of T turns is left, each of them drawn evenly, in order; 0 of one without turns."""
    return sorted(rng.randrange(max(1, T)) for _ in range(exits))
