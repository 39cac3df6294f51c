"""ReLIFT: what a whole group failed at is demonstrated once enough of it has gathered, between updates of reinforcement."""

from __future__ import annotations

from typing import Any

from turnwise.agents.rollout import Request
from turnwise.errors import RecipeError
from turnwise.kinds import PLAYED
from turnwise.registry import component
from turnwise.tasks.core import Json, Task
from turnwise.trainers.core import PartState
from turnwise.trainers.guide.core import is_unsolved
from turnwise.trainers.learn.warm_start import demonstrate
from turnwise.trainers.source.core import SourceContext, SourceDraw, by_agent


@component("source", "relift", paper="2506.07527", reads=(PLAYED,), scripted=True)
class Relift:
    """Demonstrations of tasks at which every episode of a group failed; ``batch`` of them are shown when so many wait.

    ReLIFT (Ma et al. 2025) keeps a demonstration of each prompt that none of its rollouts solved in a buffer; as soon as that
    holds 128, one update of supervised learning is made on 128, which leave it. Imitation is spent where reinforcement has
    nothing to reinforce. Ours: a demonstration is played when it is due, by a scripted agent, on the task and the chance at
    which the group's first episode failed; a task that waits does not wait twice; what a demonstrator fails at as well is not
    shown; and they enter the steps of the update beside what was played, where theirs are a step by themselves with an
    optimizer of its own. Theirs is nll − 0.001·H, so give the source
    ``loss: [nll, {name: entropy, weight: 0.001}]``. Episodes that do not count say nothing: a group counts as failed by its
    others, and not at all without one.

    Worked by hand: 126 wait and 5 groups fail: 128 are shown, and 3 wait.

    >>> import asyncio
    >>> from dataclasses import replace
    >>> from turnwise.trainers.source.toy import example_context, failed_groups
    >>> source, see = Relift(batch=3), example_context("shop/quick")
    >>> draws = [asyncio.run(source(replace(see, played=failed_groups(first, 2)), 0)) for first in (0, 2)]
    >>> [[episode.success for episode in draw.shown] for draw in draws], len(source.waiting)
    ([[], [True, True, True]], 1)

    Raises:
        RecipeError: ``batch`` is below 1.
    """

    def __init__(self, *, demonstrator: str = "gold", batch: int = 16) -> None:
        if batch < 1:
            raise RecipeError(
                f"source 'relift': batch={batch} is no number of demonstrations.",
                "Give how many are shown together (16; the paper has 128).",
            )
        self.demonstrator, self.batch = demonstrator, batch
        self.waiting: dict[str, tuple[Task, int]] = {}

    async def __call__(self, see: SourceContext, update: int) -> SourceDraw:
        for group in see.played:
            if is_unsolved(group):
                first = next(episode for episode in group if episode.outcome.counts)
                self.waiting.setdefault(first.task.id, (first.task, first.seed))
        if len(self.waiting) < self.batch:
            return SourceDraw()
        due = [*self.waiting][: self.batch]
        requests = [Request(*self.waiting.pop(name)) for name in due]
        played = await demonstrate(
            requests,
            self.demonstrator,
            see.env_options,
            see.renderer,
            env_workers=see.env_workers,
            limits=see.limits,
        )
        return SourceDraw(shown=[one for episode in played if episode.success for one in by_agent(episode)])

    def state(self) -> PartState:
        rows: list[Json] = [{"task": task.to_json(), "seed": seed} for task, seed in self.waiting.values()]
        return PartState({"waiting": rows})

    def restore(self, state: PartState) -> None:
        rows: Any = state.numbers.get("waiting", [])
        kept = [(Task.from_json(row["task"]), int(row["seed"])) for row in rows]
        self.waiting = {task.id: (task, seed) for task, seed in kept}
