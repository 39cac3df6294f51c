"""Demonstrations: episodes of a scripted agent, imitated beside what is played."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.trainers.learn.warm_start import demonstrated
from turnwise.trainers.source.core import SourceContext, SourceDraw, by_agent

OFFSET = 1 << 30
"""The warm start's demonstrations come before this one, so that none is seen twice."""


@component("source", "demonstrations", scripted=True)
async def demonstrations(
    see: SourceContext, update: int, *, demonstrator: str = "gold", episodes: int = 16
) -> SourceDraw:
    """New training tasks, played by a scripted agent in every update: supervised learning beside reinforcement.

    The tasks are others than those that the policy plays and those of the warm start.

    >>> import asyncio
    >>> from turnwise.trainers.source.toy import example_context
    >>> drawn = asyncio.run(demonstrations(example_context("shop/quick"), 0, episodes=2))
    >>> [(episode.success, len(episode.trajectory.turns)) for episode in drawn.shown]
    [(True, 4), (True, 4)]
    """
    played = await demonstrated(
        see.mixture,
        demonstrator,
        see.seed,
        episodes,
        OFFSET + update * episodes,
        see.env_options,
        see.renderer,
        env_workers=see.env_workers,
        limits=see.limits,
    )
    return SourceDraw(shown=[one for episode in played for one in by_agent(episode)])
