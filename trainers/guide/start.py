"""Nudges: an episode in which no tool was called for some turns is told so, below what it reads next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from turnwise.agents.core import PREVIOUS, ROOT, History, Reply
from turnwise.agents.policies.model import ModelPolicy, prompt_of
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_unsolved
from turnwise.trainers.guide.told import read_so_far

MARK = "guide/start"


@dataclass
class NudgedPolicy:
    """A model that now and then reads a paragraph more below the last message; its turns from there on say that they are learned without it."""

    model: ModelPolicy
    nudge: str
    after: int
    most: int
    name: str = MARK

    @property
    def version(self) -> int:
        return self.model.version

    async def act(self, history: History) -> Reply:
        scored, is_whole, _ = prompt_of(history, self.model.renderer)
        called = [bool(turn.action.tool_calls) for turn in history.turns]
        read = None
        if history.tools and len(called) in nudged([*called, False], self.after, self.most):
            read = self.model.renderer.told_last(scored, self.nudge)
        context = [*(read or scored)] if is_whole else [*read_so_far(history), *(read or scored)]
        plain = scored if is_whole else (*history.token_ids, *scored)
        reply = await self.model.reply(history, context, plain)
        return reply._replace(
            prompt_ids=read or scored,
            scored_ids=scored if read else None,
            parent=ROOT if is_whole and history.turns else PREVIOUS,
            source=MARK if (*context,) != (*plain,) else "",
        )

    def close(self) -> None:
        """The maker of the model closes it."""


@component("guide", "start")
async def start(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    nudge: str = "Maybe a tool would help here.",
    after: int = 2,
    most: int = 1,
    where: Literal["unsolved", "all"] = "unsolved",
) -> list[Group]:
    """Plays groups again, and tells an episode below what it reads next that a tool may help, when it called none in ``after`` turns; learned as untold.

    The hints of START: a short fixed text where a tool would be of use makes a policy call one that was never shown how. A turn calls a tool if its message has a call; the
    count begins anew after a call and after a nudge, and an episode is nudged ``most`` times. An episode that was not nudged is the policy's own,
    and so are the turns before the first nudge. Where an environment has no tools nobody is nudged. With ``where: unsolved`` only groups that nobody solved are played again (ours).
    Left out: nudges after words within a thought and before its end, and the fine-tuning on what was solved with hints and rewritten.

    It changes the objective: turns that were sampled with help are weighed otherwise than by their ratio.

    Worked by hand: no call in turns 0, 1 and 2: turn 2 is nudged, and no other; a call in turn 1 puts it off to turn 4.

    >>> nudged([False] * 5, 2, 1), nudged([False, True, False, False, False], 2, 1), nudged([False] * 5, 2, 2)
    ([2], [4], [2, 4])
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(start, "shop/quick", groups=1, size=2)
    >>> [[turn.reply.source for turn in episode.trajectory.turns][:4] for episode in guided[0]]
    [['', '', 'guide/start', 'guide/start'], ['', '', 'guide/start', 'guide/start']]

    Raises:
        RecipeError: the nudge would come before the first turn, never, or say nothing.
    """
    if after < 1 or most < 1 or not nudge.strip():
        raise RecipeError(
            f"guide 'start': after={after}, most={most}, nudge={nudge!r}.",
            "Give 1 turn or more, 1 nudge or more, and a text.",
        )
    chosen = {n: group for n, group in enumerate(groups) if where == "all" or is_unsolved(group)}
    played = await player(chosen, NudgedPolicy(player.model, nudge, after, most))
    return [played.get(n, [*group]) for n, group in enumerate(groups)]


def nudged(called: Sequence[bool], after: int, most: int) -> list[int]:
    """The turns that are nudged, by whether each called a tool."""
    found: list[int] = []
    quiet = 0
    for k, is_call in enumerate(called):
        if quiet >= after and len(found) < most:
            found.append(k)
            quiet = 0
        quiet = 0 if is_call else quiet + 1
    return found
