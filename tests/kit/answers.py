"""What engines answer, and whether two say the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from turnwise.agents.core import Completion, Sampling

PROMPTS = [[5 + i, 6, 7] * (3 + i) for i in range(6)]
LONG = Sampling(max_tokens=40)


def sample(
    engine: Any,
    prompts: Sequence[Sequence[int]] = PROMPTS,
    sampling: Sampling = LONG,
    *,
    stop_ids: Sequence[int] = (),
) -> list[Completion]:
    """All at once, the n-th with seed n."""

    async def together() -> list[Completion]:
        jobs = (engine.generate(p, sampling, stop_ids=stop_ids, seed=i) for i, p in enumerate(prompts))
        return list(await asyncio.gather(*jobs))

    return asyncio.run(together())


def assert_same(ours: Sequence[Completion], theirs: Sequence[Completion]) -> None:
    """The same tokens of the same weights, and log-probabilities to rounding."""
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.token_ids, mine.stopped, mine.versions) == (
            other.token_ids,
            other.stopped,
            other.versions,
        )
        assert mine.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def wait_for(holds: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until something holds."""
    waiting = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        waiting.wait(0.02)
    raise AssertionError("it never came to hold")


def moved(model: Any, seed: int) -> None:
    """Other adapters, as an optimizer's step would make them."""
    import torch

    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1, generator=rng)
