"""The policy itself as the teacher, when it has not seen what the environment answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from turnwise.agents.core import Episode
from turnwise.envs.messages import Message
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.teacher.contexts import rewritten_rows
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


@component("teacher", "blind", gives=GIVES, paper="2507.06448")
class BlindTeacher(Teacher):
    """The policy as it is now, before whom every answer of the environment after the first message stands as ``instead``.

    PAPO (2507.06448) masks a picture to see what of an answer came from it; here it is the observations of later turns. What
    the policy finds likelier than the blind one does is what it read. Use it with the loss `papo`. Each reply is a row
    of its own, and what they have in common is read once (``learn/tree.py``).

    >>> BlindTeacher(None).instead
    '(not shown)'
    """

    writes_anew = True

    def __init__(self, setup: TeacherSetup, *, instead: str = "(not shown)") -> None:
        self.instead = instead

    def rows(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> TokenRows:
        return rewritten_rows(see, batch, groups, self._masked)

    def _masked(self, episode: Episode, k: int, said: Sequence[Message]) -> Sequence[Message]:
        first = len(episode.trajectory.turns[0].observation)
        return [
            message if i < first or message.role == "assistant" else replace(message, content=self.instead)
            for i, message in enumerate(said)
        ]
