"""TON: stored episodes are imitated with their thoughts and without, so that whether to think is the policy's choice."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from turnwise.agents.core import Episode, Trajectory, Turn
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.source.core import SourceContext, SourceDraw, by_agent
from turnwise.trainers.source.rendering import ToolsOfTasks, rendered
from turnwise.trainers.source.stored import draw_groups, required_path, stored_groups

OPENS, CLOSES, EMPTY = "<think>", "</think>", "<think>\n\n</think>"


@component("source", "thought_dropout", paper="2505.16854")
class ThoughtDropout:
    """`stored` episodes, in which each turn's thoughts are emptied with probability ``drop``, drawn anew in every update.

    The first stage of TON (Wang et al. 2025): imitation of ``<think>\\n\\n</think>`` beside whole thoughts gives the policy both
    forms, and reinforcement without a word on length, in a later phase, finds where thinking pays. Theirs are single answers;
    ours draws for every turn, and what was dropped is gone from the prompts of later turns too. Left out: their reverse
    thinking, by which the policy writes the thoughts of demonstrations that have none. A thought whose beginning the chat
    template writes into the prompt is not seen.

    Worked by hand: a thought before an answer, and one that was never closed, which stays.

    >>> without_thoughts("<think>Up or down?</think>go up"), without_thoughts("<think>Up or")
    ('<think>\\n\\n</think>go up', '<think>Up or')
    >>> import asyncio
    >>> from turnwise.trainers.source.toy import example_context, example_log
    >>> source = ThoughtDropout(path=str(example_log()), groups=2, solved=False, drop=1.0)
    >>> shown = asyncio.run(source(example_context("shop/quick"), 0)).shown
    >>> [{turn.action.content.startswith(EMPTY) for turn in one.trajectory.turns} for one in shown].count({True})
    2

    Raises:
        RecipeError: there is no path, or ``drop`` is no probability above 0.
        RunError: when it is asked: the log has no episode that could be learned from, or none of them has a thought.
    """

    def __init__(self, *, path: str = "", groups: int = 4, solved: bool = True, drop: float = 0.5) -> None:
        if not 0 < drop <= 1:
            raise RecipeError(
                f"source 'thought_dropout': drop={drop:g} is no share of thoughts to be dropped.",
                "Give a number above 0, up to 1 (0.5), or use source stored, which keeps all.",
            )
        self.path, self.groups = required_path("thought_dropout", path), groups
        self.solved, self.drop = solved, drop
        self._tools: ToolsOfTasks | None = None

    def log_path(self) -> str:
        return self.path

    async def __call__(self, see: SourceContext, update: int) -> SourceDraw:
        known = stored_groups(see, self.path, solved=self.solved)
        if self._tools is None:
            _require_thoughts(known, self.path)
            self._tools = ToolsOfTasks(see.env_options)
        rng, shown = derive_rng("thought dropout", see.seed, update), list[Episode]()
        for group in draw_groups(see, update, known, self.groups):
            for one in (alone for episode in group for alone in by_agent(episode)):
                dropped = self._dropped(one, rng)
                shown.append(
                    one if dropped == one else rendered(dropped, see.renderer, self._tools, self.path)
                )
        return SourceDraw(shown=shown)

    def _dropped(self, episode: Episode, rng: random.Random) -> Episode:
        """The episode with some turns' thoughts emptied; its tokens are still those of before."""

        def of(turn: Turn) -> Turn:
            said = without_thoughts(turn.action.content)
            if said == turn.action.content or rng.random() >= self.drop:
                return turn
            return replace(turn, reply=turn.reply._replace(message=replace(turn.action, content=said)))

        return replace(
            episode,
            trajectories={
                name: Trajectory(tuple(map(of, one.turns)), one.agent, one.final)
                for name, one in episode.trajectories.items()
            },
        )


def without_thoughts(text: str) -> str:
    """The text with every thought that was closed emptied, as the policy is to say it."""
    pieces, at = list[str](), 0
    while (opened := text.find(OPENS, at)) >= 0 and (closed := text.find(CLOSES, opened)) >= 0:
        pieces += [text[at:opened], EMPTY]
        at = closed + len(CLOSES)
    return "".join([*pieces, text[at:]])


def _require_thoughts(groups: Sequence[Group], path: str) -> None:
    said = (
        turn.action.content
        for group in groups
        for episode in group
        for one in episode.trajectories.values()
        for turn in one.turns
    )
    if all(without_thoughts(text) == text for text in said):
        raise RunError(
            f"{path} has no thought ({OPENS}…{CLOSES}) that could be dropped.",
            "Name the log of a model that thinks, or use source stored.",
        )
