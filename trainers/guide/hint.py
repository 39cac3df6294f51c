"""Hints: groups that nobody solved are played again under a prompt that says how, and learned without it."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_solved
from turnwise.trainers.guide.rows import actions_of, leaks, solutions, told_by_seed, unsolved, written
from turnwise.trainers.kit.asking import judge_policy

QUESTION = """\
Below are a task and what solves it. Write a short hint for somebody who failed. Say what to look at or how to begin, do not give the answer
away, and repeat no step of the solution.

Task:
{task}

Solution:
{solution}"""


@component("guide", "hint")
async def hint(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    demonstrator: str = "gold",
    turns: int = 1,
    writer: str = "",
) -> list[Group]:
    """Plays unsolved groups again with the demonstrator's first ``turns`` actions told in the prompt; learned as if untold.

    Tokens were sampled under the prompt with the hint and are scored under the one without, so that the correction's
    weights are π_old(without)/π_behaviour(with). Guide (Nath et al. 2025) has this ratio too, but PPO's clip is there on all of
    π(without)/π_behaviour(with): at log π = −2 and −1.2 the advantage 1.5 gives 0.674 in both, −1.5 gives −1.2 without slope
    there and −0.674 with it here. The loss `told_clip` is the paper's: `guide: [{name: hint, loss: [told_clip],
    correction: none}]`. Its hints are written by a stronger model that sees the reference and may not give the answer away: ``writer`` is the spec of
    any policy that does so, or `self` for the policy that is trained, and a hint that holds an action of the solution word for word is not used. With no
    ``writer`` the hint is the solution's beginning, which is ours. If nobody solves the group with the hint
    either, it stays as it was played. Since groups are kept by their outcomes, the step is that of the policy's own return
    only where the outcome is the only reward, and the correction the whole ratio of a trajectory (docs/recipe-bias.md).

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(hint, "shop/quick", groups=1, size=2)
    >>> guided == plain  # an untrained model solves nothing, whatever it is told
    True
    """
    hard = unsolved(groups)
    shown = await solutions(player, hard, demonstrator)
    hints = {n: "\n".join(actions_of(one)[:turns]) for n, one in shown.items()}
    if writer:
        policy = player.policy if writer == "self" else judge_policy(writer)
        asked = {
            n: QUESTION.format(task=one.task.prompt, solution="\n".join(actions_of(one)))
            for n, one in shown.items()
        }
        wrote = await written(policy, asked, player.update)
        hints = {n: text for n, text in wrote.items() if text and not leaks(text, actions_of(shown[n]))}
    asked = player.requests({n: hard[n] for n in hints})
    told = {one.seed: f"Hint: {hints[n]}" for n, every in asked.items() for one in every}
    again = await player.play(asked, told_by_seed(player, "guide/hint", told, keeps=False))
    return [again[n] if is_solved(again.get(n, ())) else [*group] for n, group in enumerate(groups)]
