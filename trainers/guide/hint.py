"""Hints: groups that nobody solved are played again under a prompt that says how, and learned without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from turnwise.agents.core import NO_PARENT, History, Reply
from turnwise.agents.policies.model import DemonstrationPolicy, ModelPolicy, prompt_ids
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.tokens.telling import told_below
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_unsolved


@dataclass
class HintedPolicy:
    """A model that reads a hint at the end of the first message; its replies say under which prompt they are learned.

    ``hints`` by the id of the task. ``History.token_ids`` stay those without the hint.
    """

    name: str
    model: ModelPolicy
    hints: Mapping[str, str]

    @property
    def version(self) -> int:
        return self.model.version

    async def act(self, history: History) -> Reply:
        renderer = self.model.renderer
        new, is_whole = prompt_ids(history, renderer)
        opening = ()
        if is_whole:
            told = told_below(history.messages(), f"Hint: {self.hints[history.task.id]}")
            opening = renderer.start(told, history.tools)
        context = self._context(history, opening, new)
        reply = await self.model.reply(history, context, new if is_whole else (*history.token_ids, *new))
        parent = NO_PARENT if is_whole and history.turns else None
        return reply._replace(
            prompt_ids=opening or new, scored_ids=new if is_whole else None, parent=parent, source=self.name
        )

    def _context(self, history: History, opening: Sequence[int], new: Sequence[int]) -> list[int]:
        """What the model reads: as it was told, from the last prompt that stands alone."""
        if opening:
            return [*opening]
        context: list[int] = []
        for turn in history.turns:
            if turn.reply.parent == NO_PARENT:
                context = []
            context += (*turn.reply.prompt_ids, *turn.reply.action_ids)
        return [*context, *new]

    def close(self) -> None:
        """Whoever made the model closes it."""


@component("guide", "hint")
async def hint(
    player: GuidePlayer, groups: Sequence[Group], *, demonstrator: str = "gold", turns: int = 1
) -> list[Group]:
    """Plays unsolved groups again with the demonstrator's first ``turns`` actions told in the prompt; learned as if untold.

    Tokens were sampled under the prompt with the hint and are scored under the one without, so that the correction's
    weights are π_old(without)/π_behaviour(with), as in Guide (Nath et al. 2025), which has its hints written by a
    stronger model; taking them from the environment's own solution is ours. If nobody solves the group with the hint
    either, it stays as it was played. Since groups are kept by their outcomes, the step is that of the policy's own return
    only where the outcome is the only reward, and the correction the whole ratio of a trajectory (docs/recipe-bias.md).

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(hint, "shop/quick", groups=1, size=2)
    >>> guided == plain  # an untrained model solves nothing, whatever it is told
    True
    """
    unsolved = {number: group for number, group in enumerate(groups) if is_unsolved(group)}
    shows = DemonstrationPolicy(scripted(demonstrator), player.renderer)
    shown = await player({number: group[:1] for number, group in unsolved.items()}, shows)
    hints = {
        episode.task.id: "\n".join(str(turn.action) for turn in episode.trajectory.turns[:turns])
        for (episode,) in shown.values()
        if episode.success
    }
    again = {number: group for number, group in unsolved.items() if group[0].task.id in hints}
    told = await player(again, HintedPolicy("guide/hint", player.model, hints))
    return [
        told[number] if number in told and not is_unsolved(told[number]) else [*group]
        for number, group in enumerate(groups)
    ]
