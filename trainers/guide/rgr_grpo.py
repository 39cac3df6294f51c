"""Refinements by a rubric: the best episode of each group is played once more, told which criteria it does not meet."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import actions_of, told_once, with_rows
from turnwise.trainers.kit.rubric import Criterion, as_list, marks, rubrics_of, score

REFINE = "An earlier attempt:\n{attempt}\n\nIt does not meet these criteria:\n{criteria}"


@component("guide", "rgr_grpo", paper="2511.12344")
async def rgr_grpo(
    player: GuidePlayer, groups: Sequence[Group], *, policy: str = "openai:judge"
) -> list[Group]:
    """Plays the best episode of each group once more, told what it did and the criteria that it does not meet; learned as untold.

    RGR-GRPO (2025): the best is the one with the highest grade by judge `rubric`, the first of equals; where it meets everything, nothing is
    played. The refinement replaces the last row (ours, as is which row goes) and is weighed like an episode of somebody else:
    `guide: [{name: rgr_grpo, loss: [luffy], correction: none}]`. The grade itself is paid by judge `rubric` with the reward `from_signal`;
    which criteria a task has is said there, and ``policy`` is asked of those that are not checked by code. The constant of the weight π/(π + γ)
    is not known; `luffy` has 0.1.

    It changes the objective: rows that were sampled with help are weighed otherwise than by their ratio.

    Worked by hand: points 3, 2, 1 of which the first and the third are met: 0.6667, and the second is what the refinement is told.

    >>> rubric = [Criterion("names it", 3), Criterion("shows why", 2), Criterion("ends", 1)]
    >>> round(score(rubric, [True, False, True]), 4), [one.text for one in missed(rubric, [True, False, True])]
    (0.6667, ['shows why'])
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(rgr_grpo, "shop/quick", groups=1, size=2)
    >>> [{turn.reply.source for turn in episode.trajectory.turns} for episode in guided[0]]
    [{''}, {'guide/rgr_grpo'}]
    """
    rubrics = await rubrics_of([group[0].task for group in groups])
    told: dict[int, str] = {}
    for n, group in enumerate(groups):
        counting = [one for one in group if one.outcome.counts]
        if not counting:
            continue
        rubric, met = rubrics[group[0].task.id], await marks(counting, rubrics, policy)
        best = max(range(len(counting)), key=lambda i, rubric=rubric, met=met: score(rubric, met[i]))
        if left := missed(rubric, met[best]):
            attempt = "\n".join(actions_of(counting[best]))
            told[n] = REFINE.format(attempt=attempt, criteria=as_list(left))
    played = await told_once(player, dict(enumerate(groups)), "guide/rgr_grpo", told, keeps=False)
    rows = {n: (len(groups[n]) - 1, one) for n, one in played.items() if one.outcome.counts}
    return with_rows(groups, rows)


def missed(rubric: Sequence[Criterion], met: Sequence[bool]) -> list[Criterion]:
    """The criteria that would have earned something and are not met."""
    return [one for one, is_met in zip(rubric, met, strict=True) if one.points > 0 and not is_met]
