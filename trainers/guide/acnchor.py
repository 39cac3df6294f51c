"""The gold episode in every group, so that each has a success to be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import MarkedPolicy, expert, unsolved, with_rows


@component("guide", "acnchor")
async def acnchor(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    demonstrator: str = "gold",
    where: Literal["all", "unsolved"] = "all",
) -> list[Group]:
    """Puts a demonstrator's solution in place of the last row of every group; its tokens are learned.

    ACNCHOR: 1 gold episode and G − 1 of the policy's own in each group, always, since groups that hold failures alone have no
    direction. RL-PLUS (Dong et al. 2025) has one external episode in each group too, with the loss `rl_plus` of its tokens and
    the credit rule `rl_plus`, whose baseline are the own rows: `guide: [{name: acnchor, loss: [rl_plus], correction: none}]`,
    `credit: rl_plus`. ``demonstrator`` is a script, or any policy's spec. How the paper weighs the gold row is not known: give its
    tokens the loss `luffy`, A·π/(π + γ), and `correction: none`. With ``where: unsolved`` only groups that
    nobody solved get it (ours). A task that the demonstrator does not solve stays as it was played.

    It changes the objective: to the return a term is added for each demonstration's likelihood.

    Worked by hand: gold beside 7 failures has (1 − 1/8)/√(7/64) = 2.6458 population deviations, each failure −0.3780; beside two
    successes and five failures 1.2910 and −0.7746; beside seven successes all have 0.

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(acnchor, "shop/quick", groups=1, size=2)
    >>> [[turn.reply.source for turn in episode.trajectory.turns][:2] for episode in guided[0]]
    [['', ''], ['guide/acnchor', 'guide/acnchor']]
    >>> [episode.success for episode in guided[0]]
    [False, True]
    """
    chosen = dict(enumerate(groups)) if where == "all" else unsolved(groups)
    asked = {number: group[-1:] for number, group in chosen.items() if group}
    shown = await player(asked, MarkedPolicy("guide/acnchor", expert(demonstrator, player)))
    return with_rows(groups, {n: (len(groups[n]) - 1, one) for n, (one,) in shown.items() if one.success})
