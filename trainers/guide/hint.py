"""Hints: groups that nobody solved are played again under a prompt that says how, and learned without it."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_solved, is_unsolved
from turnwise.trainers.guide.told import ToldPolicy


@component("guide", "hint")
async def hint(
    player: GuidePlayer, groups: Sequence[Group], *, demonstrator: str = "gold", turns: int = 1
) -> list[Group]:
    """Plays unsolved groups again with the demonstrator's first ``turns`` actions told in the prompt; learned as if untold.

    Tokens were sampled under the prompt with the hint and are scored under the one without, so that the correction's
    weights are π_old(without)/π_behaviour(with). Guide (Nath et al. 2025) has this ratio too, but PPO's clip is there on all of
    π(without)/π_behaviour(with): at log π = −2 and −1.2 the advantage 1.5 gives 0.674 in both, −1.5 gives −1.2 without slope
    there and −0.674 with it here. The loss `told_clip` is the paper's: `guide: [{name: hint, loss: [told_clip],
    correction: none}]`. Its hints are written by a stronger model; taking them from the environment's own solution is ours. If nobody solves the group with the hint
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
    reads = ToldPolicy("guide/hint", player.model, lambda history: f"Hint: {hints[history.task.id]}")
    told = await player(again, reads)
    return [
        told[number] if number in told and is_solved(told[number]) else [*group]
        for number, group in enumerate(groups)
    ]
