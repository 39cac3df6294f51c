"""The policy itself as the teacher, when it knows what came of each turn."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.teacher.contexts import told_each_turn
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


@component("teacher", "hindsight", gives=GIVES, paper="2605.19447")
class HindsightTeacher(Teacher):
    """The policy as it is now, told before each reply what the environment answered to it, and at the last one how it ended.

    Tokens that this knowledge makes likelier led where they should; those that it makes less likely did not. Use it with the
    shape `step_opsd`, where the reward says which way and this how much (SERL 2605.19447 and StepOPSD 2605.27140 have the
    environment's feedback as teacher, told turn by turn), or distil it with `distill` or `kdrl`. What is told stands below the
    observation that the reply answers, at most ``longest`` characters of it; the wording is ours. Each reply is a row of its own,
    and what they have in common is read once (``learn/tree.py``).

    >>> HindsightTeacher(None, longest=80).longest
    80
    """

    def __init__(self, setup: TeacherSetup, *, longest: int = 400, outcome: bool = True) -> None:
        self.longest, self.outcome = longest, outcome

    def rows(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> TokenRows:
        return told_each_turn(see, batch, groups, self.hindsight)

    def hindsight(self, episode: Episode, k: int) -> str:
        """Say in words what came of turn ``k``."""
        turns, final = episode.trajectory.turns, episode.trajectory.final
        after = turns[k + 1].observation if k + 1 < len(turns) else final
        told = " ".join(message.content for message in after or () if message.content)[: self.longest]
        came = (
            f"After your reply the answer will be: {told}"
            if told
            else "Nothing will be answered to your reply."
        )
        if k + 1 == len(turns) and self.outcome:
            came += f" The task will be {'solved' if episode.success else 'failed'}."
        return f"({came})"
