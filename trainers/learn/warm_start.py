"""Supervised warm start: imitate a scripted agent, so that reinforcement has something to reinforce."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from turnwise.agents.core import Episode, Trajectory
from turnwise.agents.evaluation.failures import causes
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Limits, Request, rollout
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.workers.pool import WorkerPool
from turnwise.errors import RunError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.learn.chats import Chats
from turnwise.trainers.learn.collate import collate_rows
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.options import ImitationOptions
from turnwise.trainers.sampler.mixture import Mixture

WARM_START_TASKS = 1 << 40
"""Demonstrations play training tasks from this index on, reinforcement those from 0 on."""
_logger = logging.getLogger(__name__)


async def demonstrations(
    mixture: Mixture,
    demonstrator: str,
    seed: int,
    count: int,
    start: int,
    env_options: Mapping[str, Any] | None = None,
    renderer: Renderer | None = None,
    *,
    env_workers: int | WorkerPool = 0,
    limits: Limits | None = None,
    forgets: float = 0.0,
) -> list[Trajectory]:
    """The trajectories of :func:`demonstrated`, of every agent.

    Raises:
        RunError: not one of these episodes could be played.
    """
    episodes = await demonstrated(
        mixture,
        demonstrator,
        seed,
        count,
        start,
        env_options,
        renderer,
        env_workers=env_workers,
        limits=limits,
        forgets=forgets,
    )
    return [said for episode in episodes for said in episode.trajectories.values() if said.turns]


async def demonstrated(
    mixture: Mixture,
    demonstrator: str,
    seed: int,
    count: int,
    start: int,
    env_options: Mapping[str, Any] | None = None,
    renderer: Renderer | None = None,
    *,
    env_workers: int | WorkerPool = 0,
    limits: Limits | None = None,
    forgets: float = 0.0,
) -> list[Episode]:
    """Play the demonstrator on ``count`` training tasks from index ``start`` on; returns the episodes that count.

    With a ``renderer`` the replies carry their tokens, and each line that is written for later contexts is left out with the
    chance ``forgets``.

    Raises:
        RunError: not one of these episodes could be played.
    """
    tasks = mixture.tasks(count, start=WARM_START_TASKS + start)
    requests = [
        Request(task, derive_rng("warm start", seed, start + i).getrandbits(62))
        for i, task in enumerate(tasks)
    ]
    return await demonstrate(
        requests,
        demonstrator,
        env_options,
        renderer,
        env_workers=env_workers,
        limits=limits,
        forgets=forgets,
        of=mixture.name,
    )


async def demonstrate(
    requests: Sequence[Request],
    demonstrator: str,
    env_options: Mapping[str, Any] | None = None,
    renderer: Renderer | None = None,
    *,
    env_workers: int | WorkerPool = 0,
    limits: Limits | None = None,
    forgets: float = 0.0,
    of: str = "",
) -> list[Episode]:
    """Play the demonstrator on what is requested, tasks of the suite ``of``; returns the episodes that count.

    With a ``renderer`` the replies carry their tokens, and each line that is written for later contexts is left out with the
    chance ``forgets``.

    Raises:
        RunError: not one of these episodes could be played.
    """
    script = scripted(demonstrator)
    policy = DemonstrationPolicy(script, renderer, forgets) if renderer else script
    episodes = await rollout(
        requests, policy, env_options=env_options, env_workers=env_workers, limits=limits
    )
    counting = [episode for episode in episodes if episode.outcome.counts]
    if not any(said.turns for episode in counting for said in episode.trajectories.values()):
        raise RunError(
            f"scripted:{demonstrator} can demonstrate nothing in {of or requests[0].task.env}: {episodes[0].error[:200]}",
            "Repair the environment (`turnwise check`), or choose another demonstrator.",
        )
    if len(counting) < len(episodes):
        _logger.warning(
            "%d of %d demonstrations failed, and are left out: %s",
            len(episodes) - len(counting),
            len(episodes),
            causes(episodes)[0],
        )
    return counting


def texts(trajectories: Sequence[Trajectory]) -> Iterator[str]:
    """All text of these trajectories, on which a tokeniser is trained."""
    for trajectory in trajectories:
        for turn in trajectory.turns:
            yield from (message.content for message in turn.observation)
            yield turn.action.content


async def warm_start(
    learner: Learner,
    renderer: Renderer,
    mixture: Mixture,
    options: ImitationOptions,
    seed: int,
    on_step: Callable[[int, int, Mapping[str, float]], bool],
    env_options: Mapping[str, Any] | None,
    *,
    env_workers: int | WorkerPool,
    limits: Limits | None,
    done: int,
    context: int,
) -> None:
    """Train on demonstrations, each seen once, or on chats; the rate rises over 30 steps, then falls as a cosine to a tenth.

    ``context`` is the number of tokens that a chat may have.

    ``on_step(step, steps, metrics)`` is called after each step, counted from 1; it ends the warm start by
    returning False. ``done`` steps were made before.
    """
    steps = options.episodes // options.batch_size
    chats = Chats(options.chats, renderer, context, seed) if options.chats else None
    for step in range(done, steps):
        first = step * options.batch_size
        if chats is not None:
            shown = chats.batch(first, options.batch_size)
        else:
            shown = await demonstrations(
                mixture,
                options.demonstrator,
                seed,
                options.batch_size,
                first,
                env_options,
                renderer,
                env_workers=env_workers,
                limits=limits,
                forgets=options.forgets,
            )
        rows = collate_rows(shown)
        rate = options.learning_rate * min(1.0, (step + 1) / 30) * _cosine(step / steps)
        if not on_step(step + 1, steps, learner.supervise(rows, options.observation_weight, rate)):
            return


def _cosine(done: float) -> float:
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done))
