"""Self-explanations: told how a task ends, the policy shows a way there, which it learns without having been told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import actions_of, solutions, told_once, unsolved, with_rows

TOLD = "Hint: the task is solved by ending with: {answer}"


@component("guide", "expo", paper="2507.02834")
async def expo(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    demonstrator: str = "gold",
    verified: bool = True,
    told: Literal["answer", "solution"] = "answer",
) -> list[Group]:
    """Puts an episode that the policy played when told the answer in place of the first row of unsolved groups.

    ExPO (2025): positive samples should be likely under the policy and lead to the right answer; an explanation c ~ π(· | q, a)
    that the policy writes given the gold answer a is both. It is drawn from the present policy in each update and scored under the plain task. The answer is
    the demonstrator's last action, or with ``told: solution`` all of them (ours). ``verified``: only episodes that solve
    the task count, which the paper does not check. Since a group that nobody solved teaches nothing by itself, the row that is
    replaced loses nothing; with `credit: rl_plus` the explanation does not move the baseline of the others. Its loss is `expo`:
    `guide: [{name: expo, loss: [{name: expo, weight: 0.1}], correction: none}]`.
    The DPO form is this guide with the recipe's own `loss: dpo` and none of the guide's: of a group that nobody solved the explanation is
    preferred to each of the policy's own wrong episodes; where somebody did, its own successes are.

    It changes the objective: −β·log π of the explanations is added.

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(expo, "shop/quick", groups=1, size=2, verified=False)
    >>> [{turn.reply.source for turn in episode.trajectory.turns} for episode in guided[0]]
    [{'guide/expo'}, {''}]
    """
    hard = unsolved(groups)
    shown = await solutions(player, hard, demonstrator)
    steps = {n: actions_of(one) for n, one in shown.items()}
    text = {
        n: TOLD.format(answer="\n".join(every[-1:] if told == "answer" else every))
        for n, every in steps.items()
    }
    tried = await told_once(player, hard, "guide/expo", text, keeps=False)
    good = {n: one for n, one in tried.items() if one.outcome.counts and (one.success or not verified)}
    return with_rows(groups, {n: (0, one) for n, one in good.items()})
