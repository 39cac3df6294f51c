"""Inputs of sources, and what they give: episodes that the policy did not play for this update.

Some are *shown*: each chosen token has the advantage 1, and the source's own losses. Others *join* what was played: they
are paid, credited, filtered and shaped as groups beside the played ones, and only their tokens' losses and correction are
the source's. A log-probability that nobody knows stays unknown, so that no correction takes it for certainty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from turnwise.agents.core import Episode, Trajectory, Turn
from turnwise.agents.rollout import Limits
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.workers.pool import WorkerPool
from turnwise.trainers.core import Group
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.source.held_out import HeldOut


@dataclass(frozen=True)
class SourceContext:
    """Inputs from which sources draw.

    Attributes:
        mixture: the suites that are trained on.
        seed: the run's.
        renderer: messages ⇄ tokens, of the policy.
        env_options: what environments are made with.
        env_workers: the processes that hold them; 0: this one does.
        limits: of every episode.
        played: the groups that were played for this update, whole episodes, those that failed among them.
        held_out: the tasks that the run's own evaluations play; None where there are none.
    """

    mixture: Mixture
    seed: int
    renderer: Renderer
    env_options: Mapping[str, Any]
    env_workers: int | WorkerPool
    limits: Limits
    played: Sequence[Group] = ()
    held_out: HeldOut | None = None


class SourceDraw(NamedTuple):
    """Episodes that a source gives for one update.

    Attributes:
        shown: episodes whose chosen tokens are imitated.
        joined: groups that go the way of those that were played.
    """

    shown: Sequence[Episode] = ()
    joined: Sequence[Group] = ()


Source: TypeAlias = Callable[[SourceContext, int], Awaitable[SourceDraw]]
"""(context, number of the update) → episodes; chance comes from (seed, update) alone. One that remembers is a class and Stateful;
one that looks at what was played declares ``reads=(PLAYED,)``."""


@runtime_checkable
class Joining(Protocol):
    """A source whose episodes may join what is played, and that can say before a run what they lack."""

    def joins_unknown(self) -> bool:
        """Say whether it would join tokens of which nobody kept how likely they were; False where that cannot be known yet."""
        ...


@runtime_checkable
class LogReading(Protocol):
    """A source that learns from an episode log, and can say from which."""

    def log_path(self) -> str:
        """The log whose episodes it gives."""
        ...


def is_known(episode: Episode) -> bool:
    """Say whether it is known how likely each of an episode's tokens was when it was chosen."""
    turns = [turn for said in episode.trajectories.values() for turn in said.turns]
    return all(len(turn.reply.logprobs or ()) == len(turn.reply.action_ids) for turn in turns)


def by_agent(episode: Episode) -> list[Episode]:
    """An episode once for every agent that acted, with that agent's trajectory alone."""
    return [
        replace(episode, trajectories={name: one}) for name, one in episode.trajectories.items() if one.turns
    ]


def marked(episode: Episode, source: str) -> Episode:
    """The episode with the source's name on every turn."""

    def mark(turn: Turn) -> Turn:
        return replace(turn, reply=turn.reply._replace(source=source))

    return replace(
        episode,
        trajectories={
            name: Trajectory(tuple(map(mark, one.turns)), one.agent, one.final)
            for name, one in episode.trajectories.items()
        },
    )
