"""Early exits: an episode that was played is gone back to, and from there the policy is told to answer at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from turnwise.agents.core import PREVIOUS, ROOT, Episode, History, Outcome, Reply
from turnwise.agents.policies.model import ModelPolicy, prompt_of
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import RecipeError
from turnwise.trainers.core import PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.strategy.runner import TurnPoint

TOLD = "Time is up. Stop here and give your answer now."


@dataclass
class HurriedPolicy:
    """A model that is told below what it reads next to answer now, in each of ``turns`` turns; after these a limit ends the episode.

    Its turns are learned under the prompt that says so.
    """

    name: str
    model: ModelPolicy
    told: str
    turns: int

    @property
    def version(self) -> int:
        return self.model.version

    async def act(self, history: History) -> Reply:
        if sum(turn.reply.source == self.name for turn in history.turns) >= self.turns:
            return Reply(Message("assistant", ""), end=EndReason.TURN_LIMIT)
        new, is_whole, _ = prompt_of(history, self.model.renderer)
        read = self.model.renderer.told_last(new, self.told) or new
        context = [*read] if is_whole else [*history.token_ids, *read]
        reply = await self.model.reply(history, context, context)
        parent = ROOT if is_whole and history.turns else PREVIOUS
        return reply._replace(prompt_ids=read, parent=parent, source=self.name)

    def close(self) -> None:
        """The maker of the model closes it."""


def lost(episode: Episode) -> Episode:
    """The row that stands for an episode that cannot be gone on with: one that failed to be played, or itself if it has no turns."""
    return replace(episode, outcome=Outcome.INFRA_ERROR) if episode.trajectory.turns else episode


class ExitGuide:
    """A guide that plays whole episodes itself and cuts them; it remembers nothing."""

    name = "exits"
    instead = True

    def __init__(self, told: str, turns: int) -> None:
        if turns < 1 or not told.strip():
            raise RecipeError(
                f"guide {self.name!r}: turns={turns}, told={told!r}.", "Give 1 turn or more, and a text."
            )
        self.told, self.turns = told, turns

    async def exits(
        self, player: GuidePlayer, wanted: Mapping[int, Sequence[TurnPoint]]
    ) -> dict[int, list[Episode]]:
        """An episode from each of these moments, by number of the group, in which the policy answers at once.

        Where a moment is not reached again, one that failed to be played stands for it.
        """
        found = iter(await player.moments([point for points in wanted.values() for point in points]))
        reached = {n: [next(found) for _ in points] for n, points in wanted.items()}
        starts = {n: [point for point in points if point is not None] for n, points in reached.items()}
        hurried = HurriedPolicy(f"guide/{self.name}", player.model, self.told, self.turns)
        played = {n: iter(every) for n, every in (await player.go_on(starts, hurried)).items()}
        return {
            n: [
                lost(asked.episode) if point is None else next(played[n])
                for asked, point in zip(wanted[n], points, strict=True)
            ]
            for n, points in reached.items()
        }

    def state(self) -> PartState:
        """Nothing."""
        return PartState()

    def restore(self, state: PartState) -> None:
        """There is nothing to go on with."""
