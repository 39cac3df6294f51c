"""Supervised warm start: imitate a scripted agent, so that reinforcement has something to reinforce."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from turnwise.agents.core import Trajectory
from turnwise.agents.policies.model import ShownPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.renderer import Renderer
from turnwise.agents.rollout import Request, rollout
from turnwise.envs.registry import suite_tasks
from turnwise.errors import RunError
from turnwise.tasks.core import Split, Suite, derive_rng
from turnwise.trainers.collate import collate_rows
from turnwise.trainers.learner import Learner
from turnwise.trainers.schema import WarmStart

WARM_START_TASKS = 1 << 40
"""Demonstrations play training tasks from this index on, reinforcement those from 0 on."""


async def demonstrations(
    suite: Suite,
    options: WarmStart,
    seed: int,
    count: int,
    start: int,
    env_options: Mapping[str, Any] | None = None,
    renderer: Renderer | None = None,
) -> list[Trajectory]:
    """What the demonstrator does on ``count`` training tasks from number ``start`` on, for every agent.

    With a ``renderer`` the replies carry their tokens.

    Raises:
        RunError: not one of these episodes could be played.
    """
    tasks = suite_tasks(suite, Split.TRAIN, count, start=WARM_START_TASKS + start)
    requests = [
        Request(task, derive_rng("warm start", seed, start + i).getrandbits(62))
        for i, task in enumerate(tasks)
    ]
    script = scripted(options.demonstrator)
    policy = ShownPolicy(script, renderer) if renderer else script
    episodes = await rollout(requests, policy, env_options=env_options)
    counting = [episode for episode in episodes if episode.outcome.counts]
    shown = [said for episode in counting for said in episode.trajectories.values() if said.turns]
    if not shown:
        raise RunError(
            f"scripted:{options.demonstrator} can demonstrate nothing in {suite.name}: {episodes[0].error[:200]}",
            "Repair the environment (`turnwise check`), or choose another warm_start.demonstrator.",
        )
    return shown


def texts(trajectories: Sequence[Trajectory]) -> Iterator[str]:
    """Everything that was said in these trajectories: what a tokeniser is trained on."""
    for trajectory in trajectories:
        for turn in trajectory.turns:
            yield from (message.content for message in turn.observation)
            yield turn.action.content


async def warm_start(
    learner: Learner,
    renderer: Renderer,
    suite: Suite,
    options: WarmStart,
    seed: int,
    on_step: Callable[[int, int, Mapping[str, float]], bool],
    env_options: Mapping[str, Any] | None = None,
) -> None:
    """Train on demonstrations, each seen once; the rate rises over 30 steps, then falls as a cosine to a tenth.

    ``on_step(step, steps, metrics)`` is told of each step, counted from 1; it ends the warm start by
    returning False.
    """
    steps = options.episodes // options.batch_size
    for step in range(steps):
        first = step * options.batch_size
        shown = await demonstrations(suite, options, seed, options.batch_size, first, env_options, renderer)
        rows = collate_rows(shown)
        rate = options.learning_rate * min(1.0, (step + 1) / 30) * _cosine(step / steps)
        if not on_step(step + 1, steps, learner.supervise(rows, options.observation_weight, rate)):
            return


def _cosine(done: float) -> float:
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done))
