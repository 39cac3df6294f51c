"""Small groups for examples, tests and trying proposers out."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.tasks.core import Task
from turnwise.trainers.core import Group


def attempts(solved: Sequence[bool], said: str = "say") -> list[Group]:
    """Groups of one attempt each, solved or not, at a task to be answered by a yes: ``task 1``, ``task 2`` and so on."""
    return [[_attempt(number, right, said)] for number, right in enumerate(solved, 1)]


def _attempt(number: int, right: bool, said: str) -> Episode:
    asked = Message("user", f"task {number} : {said} yes or no")
    reply = Reply(Message("assistant", f"{said} {'yes' if right else 'no'}"))
    paid = {"outcome": float(right)}
    turn = Turn(Messages((asked,)), reply, paid["outcome"], paid, f"s{number}")
    end = EndReason.SOLVED if right else EndReason.FAILED
    task = Task("by_hand", asked.content)
    return Episode(task, number, {"agent": Trajectory((turn,))}, Outcome.OK, end)
