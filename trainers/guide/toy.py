"""A guide on groups of a suite, played by a small model made from nothing: for doctests, tests and trying things out."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turnwise.agents.core import Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.models.small import build_small_model
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups


@functools.cache
def toy_model() -> Path:
    """A small model with weights drawn from seed 0, which solves nothing; made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="turnwise-toy-"))
    sizes: dict[str, Any] = {"layers": 1, "width": 64, "heads": 2, "vocab_size": 300, "context": 2048}
    build_small_model(folder, ["buy search product"], **sizes, init="random", seed=0)
    return folder


@functools.cache
def untrained_policy() -> ModelPolicy:
    """That model as a policy."""
    from transformers import AutoTokenizer

    folder = toy_model()
    engine = TorchEngine(folder, device="cpu", context_length=2048, max_sequences=8)
    renderer = Renderer(AutoTokenizer.from_pretrained(folder), tools_format="none")
    return ModelPolicy(engine, renderer, Sampling(max_tokens=3))


def played_with(
    guide: Callable[..., Any], suite: str, *, groups: int, size: int, seed: int = 0, **options: Any
) -> tuple[list[Group], list[Group]]:
    """The groups as an untrained model plays them, and as the guide leaves them."""
    return played_around(guide, suite, groups=groups, size=size, seed=seed, **options)[:2]


def played_around(
    guide: Callable[..., Any], suite: str, *, groups: int, size: int, seed: int = 0, **options: Any
) -> tuple[list[Group], list[Group], list[Group]]:
    """The groups as an untrained model plays them, as the guide leaves them, and as the model plays them once more."""
    policy = untrained_policy()
    runner = RolloutRunner(policy, as_is)
    player = GuidePlayer(runner, policy, {}, seed, 0)

    async def run() -> tuple[list[Group], list[Group], list[Group]]:
        plan = plan_groups(suite, groups, size)
        plain = await chain(runner, plan)
        guided = await guide(player, plain, **options)
        return plain, guided, await chain(runner, plan)

    return asyncio.run(run())
