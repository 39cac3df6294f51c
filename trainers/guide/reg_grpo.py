"""Augmentation by difficulty: hard tasks are played again with part of a solution, easy ones with noise."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from turnwise.agents.core import Episode
from turnwise.envs.messages import without_guidance
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.ghpo import LEAD
from turnwise.trainers.guide.rows import actions_of, solutions, told_by_seed

NOISE = "Seen elsewhere:\n{seen}"


@component("guide", "reg_grpo", paper="2506.07464")
class RegGRPO:
    """Plays groups again that earned less than was usual lately, told the beginning of a solution, and those that earned more, told what has nothing to do with them.

    Reg-GRPO (2025): the difficulty of a task is its group's mean reward beside the mean of the last W updates. A hard task's prompt has part of a
    hint before it, here the first ``share`` of the demonstrator's turns, at least one; an easy one's has noise, here the ``noise`` last
    things that the environment said in an episode of another group of the update. The last ``window`` updates are remembered, each by the mean over its
    groups as they were played first; before the first of them nobody is helped. Groups are learned as told. A hard task that the
    demonstrator does not solve stays as it was played, and so does an easy one beside which nothing else was said. The loss is `reg_grpo`.

    It changes the objective: tasks are trained under other prompts than they are evaluated under.

    Worked by hand: 0.25, 0.5 and 0.75 beside 0.5 of the updates before.

    >>> guide = RegGRPO()
    >>> guide.past = [0.25, 0.75]
    >>> [guide.difficulty(x) for x in (0.25, 0.5, 0.75)]
    ['hard', '', 'easy']
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(guide, "shop/quick", groups=1, size=2)
    >>> {turn.reply.source for episode in guided[0] for turn in episode.trajectory.turns}
    {'guide/reg_grpo'}

    Raises:
        RecipeError: nothing is remembered or said, or the share is no part of a whole.
    """

    def __init__(
        self, *, window: int = 8, share: float = 0.25, noise: int = 2, demonstrator: str = "gold"
    ) -> None:
        if window < 1 or noise < 1 or not 0 < share <= 1:
            raise RecipeError(
                f"guide 'reg_grpo': window={window}, noise={noise}, share={share:g}.",
                "Give 1 or more of the first two, and 0 < share ≤ 1.",
            )
        self.window, self.share, self.noise, self.demonstrator = window, share, noise, demonstrator
        self.past: list[float] = []

    def difficulty(self, earned: float) -> str:
        """Return ``hard`` or ``easy`` for what a group earned on average, and nothing where that is as usual."""
        usual = mean(self.past) if self.past else earned
        return "hard" if earned < usual else "easy" if earned > usual else ""

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """The groups, of which hard and easy ones are played again."""
        earned = {
            n: mean(one.trajectory.total_reward for one in counting)
            for n, group in enumerate(groups)
            if (counting := [one for one in group if one.outcome.counts])
        }
        kinds = {n: self.difficulty(x) for n, x in earned.items()}
        self.past = [*self.past, *([mean(earned.values())] if earned else [])][-self.window :]
        hard = {n: groups[n] for n, kind in kinds.items() if kind == "hard"}
        texts = {n: self._hint(one) for n, one in (await solutions(player, hard, self.demonstrator)).items()}
        for n in (n for n, kind in kinds.items() if kind == "easy"):
            others = [
                one for m, group in enumerate(groups) if m != n for one in group if one.trajectory.turns
            ]
            if others:
                texts[n] = self._seen(player.rng(n).choice(others))
        asked = player.requests({n: groups[n] for n in texts})
        told = {request.seed: texts[n] for n, every in asked.items() for request in every}
        played = await player.play(asked, told_by_seed(player, "guide/reg_grpo", told, keeps=True))
        return [[*played.get(n, group)] for n, group in enumerate(groups)]

    def _hint(self, shown: Episode) -> str:
        steps = actions_of(shown)
        return LEAD + "\n".join(steps[: max(1, round(self.share * len(steps)))])

    def _seen(self, other: Episode) -> str:
        said = [without_guidance(one.content) for turn in other.trajectory.turns for one in turn.observation]
        return NOISE.format(seen="\n".join(said[-self.noise :]))

    def state(self) -> PartState:
        """The means of the last updates."""
        return PartState({"past": self.past})

    def restore(self, state: PartState) -> None:
        """Go on with these means."""
        self.past = [float(x) for x in state.numbers.get("past", [])]
