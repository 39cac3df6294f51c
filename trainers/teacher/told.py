"""The policy itself as the teacher, when it is told how the task is solved."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from turnwise.agents.core import Episode
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, rollout
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.teacher.contexts import told_rows
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


@component("teacher", "told", gives=GIVES)
class ToldTeacher(Teacher):
    """The policy as it is now, whose first message ends in the actions of a demonstration of the same task.

    What it then finds likelier than the policy did is what the demonstration would have had it say (self-distillation
    from a privileged context, as in Snell et al. 2022, 2209.15189; with the demonstration as the context, ours). It reads
    the same sampled tokens. ``actions``: how many of them it is told; 0: all. Where the demonstration failed nothing is told, and
    the teacher reads what the policy read.

    >>> ToldTeacher(None, actions=2).actions
    2
    """

    writes_anew = True

    def __init__(self, setup: TeacherSetup, *, demonstrator: str = "gold", actions: int = 0) -> None:
        self.demonstrator, self.actions = demonstrator, actions
        scripted(demonstrator)

    def rows(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> TokenRows:
        tasks = {episode.task.id: episode.task for group in groups for episode in group}
        requests = [Request(task, 0) for task in tasks.values()]
        with ThreadPoolExecutor(1) as pool:  # the update itself may run in an event loop
            shown = pool.submit(
                lambda: asyncio.run(
                    rollout(requests, scripted(self.demonstrator), env_options=see.env_options)
                )
            ).result()
        said = {episode.task.id: self._said(episode) for episode in shown}
        return told_rows(see, batch, groups, lambda episode: said[episode.task.id])

    def _said(self, episode: Episode) -> str:
        if not episode.success:
            return ""
        turns = episode.trajectory.turns[: self.actions or None]
        return "\n".join(["A solution:", *(str(turn.action) for turn in turns)])
