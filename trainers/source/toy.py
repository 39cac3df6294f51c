"""Inputs of a source in examples and tests: a suite, a small tokeniser, a log of two groups."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from dataclasses import replace
from pathlib import Path

from turnwise.agents.core import Episode, Reply, Turn
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Limits, Request, run_episodes
from turnwise.trainers.guide.toy import untrained_policy
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.source.core import SourceContext
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups


def example_context(suite: str = "shop/quick", *, seed: int = 0) -> SourceContext:
    """A context on one suite."""
    return SourceContext(Mixture({suite: 1.0}, seed), seed, untrained_policy().renderer, {}, 0, Limits())


def failed_groups(first: int, count: int, *, suite: str = "shop/quick") -> list[list[Episode]]:
    """Groups of two episodes at which a script that knows nothing failed, with its tokens, on training tasks from ``first`` on."""
    groups = list[list[Episode]]()
    policy = DemonstrationPolicy(scripted("echo"), untrained_policy().renderer)
    for task in Mixture({suite: 1.0}, 0).tasks(count, start=first):
        group = run_episodes([Request(task, seed) for seed in (1, 2)], policy)
        groups.append([*group])
    return groups


@functools.cache
def example_log() -> Path:
    """The log of two groups of two episodes, played by an untrained model; made once in a process.

    In the second group every reply begins with a thought, and has no tokens, as in the log of somebody else's model.
    """
    path = Path(tempfile.mkdtemp(prefix="turnwise-toy-")) / "episodes.jsonl"
    runner = RolloutRunner(untrained_policy(), as_is)

    async def run() -> None:
        with EpisodeLog(path, policy="toy") as log:
            for number, group in enumerate(await chain(runner, plan_groups("shop/quick", 2, 2))):
                for episode in group:
                    log.append(_thinking(episode) if number else episode, update=0, group=number)

    asyncio.run(run())
    return path


@functools.cache
def worse_log() -> Path:
    """The same episodes, each paid 1 less in the end; made once in a process."""
    path = Path(tempfile.mkdtemp(prefix="turnwise-toy-")) / "episodes.jsonl"
    with EpisodeLog(path, policy="toy") as log:
        for record in LogReader(example_log()):
            trajectory = record.episode.trajectory
            last = replace(trajectory.turns[-1], reward=trajectory.turns[-1].reward - 1)
            paid = replace(trajectory, turns=(*trajectory.turns[:-1], last))
            log.append(replace(record.episode, trajectories={trajectory.agent: paid}))
    return path


def _thinking(episode: Episode) -> Episode:
    """The episode with a thought before whatever was said, and without tokens."""
    trajectory, turns = episode.trajectory, list[Turn]()
    for k, turn in enumerate(episode.trajectory.turns):
        said = replace(turn.action, content=f"<think>Thought {k}.</think>{turn.action.content}")
        turns.append(replace(turn, reply=Reply(said)))
    return replace(episode, trajectories={trajectory.agent: replace(trajectory, turns=tuple(turns))})
