"""What sources work with, and what they give: episodes that the policy did not play for this update.

Some are *shown*: each chosen token has the advantage 1, and the source's own losses. Others *join* what was played: they
are paid, credited, filtered and shaped as groups beside the played ones, and only their tokens' losses and correction are
the source's. A log-probability that nobody knows stays unknown, so that no correction takes it for certainty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from turnwise.agents.core import Episode, Trajectory, Turn
from turnwise.agents.rollout import Limits
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.workers.pool import WorkerPool
from turnwise.trainers.core import Group
from turnwise.trainers.sampler.mixture import Mixture


@dataclass(frozen=True)
class SourceContext:
    """What sources draw from.

    Attributes:
        mixture: the suites that are trained on.
        seed: the run's.
        renderer: messages ⇄ tokens, of the policy.
        env_options: what environments are made with.
        env_workers: the processes that hold them; 0: this one does.
        limits: of every episode.
    """

    mixture: Mixture
    seed: int
    renderer: Renderer
    env_options: Mapping[str, Any]
    env_workers: int | WorkerPool
    limits: Limits


class SourceDraw(NamedTuple):
    """What a source gives for one update.

    Attributes:
        shown: episodes whose chosen tokens are imitated.
        joined: groups that go the way of those that were played.
    """

    shown: Sequence[Episode] = ()
    joined: Sequence[Group] = ()


Source: TypeAlias = Callable[[SourceContext, int], Awaitable[SourceDraw]]
"""(context, number of the update) → episodes; chance comes from (seed, update) alone."""


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
