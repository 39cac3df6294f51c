"""Small logs written by hand: for doctests and tests of audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.agents.log.records import Record
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.tasks.core import Task
from turnwise.trainers.audit.reading import LoggedGroup, LoggedGroups


def turn(
    action: str = "!",
    reward: float = 0.0,
    *,
    state: str = "s",
    signals: Mapping[str, float] | None = None,
    logprobs: Sequence[float] = (),
    parts: Mapping[str, float] | None = None,
) -> Turn:
    """A turn that says this and earns that."""
    said = Reply(
        Message("assistant", action), action_ids=tuple(range(len(logprobs))), logprobs=tuple(logprobs)
    )
    seen = Messages((Message("user", "?"),))
    return Turn(seen, said, reward, dict(parts or {"outcome": reward}), state, signals=dict(signals or {}))


def episode(turns: Sequence[Turn], *, solved: bool, task: str = "a", seed: int = 0) -> Episode:
    """An episode of these turns."""
    end = EndReason.SOLVED if solved else EndReason.FAILED
    return Episode(Task("by_hand", task), seed, {"agent": Trajectory(tuple(turns))}, Outcome.OK, end)


def logged(groups: Mapping[str, Sequence[Episode]]) -> LoggedGroups:
    """A log of these episodes by task."""
    made = [LoggedGroup(task, tuple(Record(one) for one in episodes)) for task, episodes in groups.items()]
    return LoggedGroups("by hand", tuple(made))


def groups(results: Mapping[str, str]) -> LoggedGroups:
    """A log of one-turn episodes: for each task a word of 1 (solved) and 0.

    >>> groups({"a": "10"}).groups[0].solved
    1
    """
    return logged(
        {
            t: [episode([turn(reward=float(x))], solved=x == "1", task=t) for x in word]
            for t, word in results.items()
        }
    )


def answers(rows: Sequence[tuple[str, float, bool]], *, signal: str = "score") -> LoggedGroups:
    """One task whose runs gave these answers, were given this score on their last turn, and were right or not."""
    made = [episode([turn(said, signals={signal: score})], solved=right) for said, score, right in rows]
    return logged({"a": made})
