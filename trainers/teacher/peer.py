"""The policy itself as the teacher, when it is shown how another attempt at the same task succeeded."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.teacher.contexts import told_rows
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


@component("teacher", "peer", gives=GIVES, paper="2601.20802")
class PeerTeacher(Teacher):
    """The policy as it is now, whose first message ends in the actions of a success of the same group.

    SDPO (2601.20802): a success teaches the failures of its group, token by token, with the loss `distill` or `kdrl`. Shown is
    the success of fewest turns that is not the episode itself; where there is none nothing is shown, so that the teacher says
    what the policy says, and nothing is learned from it. Left out: the environment's error messages (`hindsight` has them),
    a teacher that follows the policy slowly.

    >>> PeerTeacher(None).actions
    0
    """

    writes_anew = True

    def __init__(self, setup: TeacherSetup, *, actions: int = 0) -> None:
        self.actions = actions

    def rows(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> TokenRows:
        shown = {id(episode): self.shown(episode, group) for group in groups for episode in group}
        return told_rows(see, batch, groups, lambda episode: shown[id(episode)])

    def shown(self, episode: Episode, group: Group) -> str:
        """The actions of the shortest other success of the group; empty if there is none."""
        peers = [
            one for one in group if one.success and one is not episode and one.task.id == episode.task.id
        ]
        if not peers:
            return ""
        turns = min(peers, key=lambda one: len(one.trajectory.turns)).trajectory.turns[: self.actions or None]
        return "\n".join(["An attempt that succeeded:", *(str(turn.action) for turn in turns)])
