"""A small training batch written by hand: for doctests, tests and trying things out."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.tasks.core import Task
from turnwise.trainers.learn.collate import TrainingBatch, collate


def training_batch(
    logprobs: Sequence[Sequence[Sequence[float]]], group: Sequence[int] | None = None
) -> TrainingBatch:
    """A batch as a run has it: of each trajectory the engine's log-probabilities, turn by turn; nothing is paid.

    Each turn's prompt is one token; a trajectory is one row. Without ``group`` all trajectories belong together.

    >>> training_batch([[[-1.0, -0.5], [-2.0]]]).rows.turn_RT.tolist()
    [[-1, 0, 0, -1, 1]]
    """
    groups: dict[int, list[Episode]] = {}
    for b, turns in enumerate(logprobs):
        groups.setdefault(group[b] if group is not None else 0, []).append(spoken(turns))
    return collate([groups[number] for number in sorted(groups)])


def spoken(logprobs: Sequence[Sequence[float]]) -> Episode:
    """An episode whose turns' tokens had these log-probabilities."""
    replies = [
        Reply(Message("assistant", "!"), (1,), tuple(range(2, 2 + len(one))), tuple(one)) for one in logprobs
    ]
    turns = tuple(Turn(Messages(), said, 0.0, {"outcome": 0.0}, f"s{k}") for k, said in enumerate(replies))
    return Episode(Task("by_hand", "?"), 0, {"agent": Trajectory(turns)}, Outcome.OK, EndReason.FAILED)
