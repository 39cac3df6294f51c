"""A rubric as judge: each criterion of the task is met or not, and the points of those that are make the grade."""

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import counting
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.rubric import marks, rubrics_of, score


@component("judge", "rubric", paper="2508.16949", gives=("rubric",))
async def rubric(groups: Sequence[Group], *, policy: str = "openai:judge") -> list[Group]:
    """A policy says of each criterion of the task whether an episode meets it: the points that are met, over all positive ones.

    The reward of RuscaRL (2025), with negative points too, so that ``rubric`` may be below 0, and of RGR-GRPO (2025), whose points are all positive. Each
    turn is given the episode's grade; it is paid by `reward: {name: from_signal, signal: rubric, form: last}`. The criteria are the task's option
    ``rubrics``, a list of {criterion, points}; a task that has none is graded without a judge, by a point for each act of
    its own solution that the agent does too, and one where it solves the task (ours). A criterion of which the answer says nothing is not met.

    Worked by hand: points 5, 3, −4, 7, the first three met: 4/15 (`turnwise.trainers.kit.rubric.score`).

    >>> import asyncio
    >>> from turnwise.trainers.strategy.runner import try_out
    >>> from turnwise.trainers.strategy.chain import chain
    >>> played, _ = try_out(chain, "scripted:gold", "shop/quick", groups=1, size=2)
    >>> [turn.signals["rubric"] for turn in asyncio.run(rubric(played))[0][0].trajectory.turns]
    [1.0, 1.0, 1.0, 1.0]
    """
    rubrics = await rubrics_of([one.task for group in groups for one in group])
    judged: list[Group] = []
    for group in groups:
        told, asked = list(group), counting(group)
        found = await marks([group[i] for i in asked], rubrics, policy)
        for i, met in zip(asked, found, strict=True):
            grade = score(rubrics[group[i].task.id], met)
            told[i] = with_signals(group[i], [{"rubric": grade} for _ in group[i].trajectory.turns])
        judged.append(told)
    return judged
