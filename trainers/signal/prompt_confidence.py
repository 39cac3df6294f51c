"""Confidence of the policy in a task's own prompt: how likely it finds the least likely of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import wave
from turnwise.trainers.learn.collate import TrainingBatch, plain_rows
from turnwise.trainers.signal.core import Measured, SignalContext


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"prompt_confidence": 0.5 + 0.25 * wave(p)[:, 0]}


@component(
    "signal",
    "prompt_confidence",
    paper="2602.05281",
    gives=("prompt_confidence",),
    reads=("tokens", "forward pass"),
    stand_in=_stand_in,
)
def prompt_confidence(
    see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], *, lowest: float = 0.2
) -> Measured:
    """exp(mean log π of the least likely tokens of the first turn's prompt), a share ``lowest`` of them, at least one.

    ProGRPO's c(q) (Li et al. 2026), for the shape `pro_grpo` with `against: prompt_confidence`. The prompt is what stands before the
    first sampled token, its first token aside, which nothing foretells; later observations are the environment's and are not read.
    Each distinct prompt is read once; one of a single token has 0.

    >>> confidence(torch.tensor([-2, -0.1, -0.1, -1.5, -0.05, -0.1, -0.2, -0.1, -0.1, -0.1]), 0.2)
    0.17377394345044514
    >>> confidence(-torch.arange(1.0, 26), 0.28) == confidence(-torch.arange(19.0, 26), 1)  # 7 of 25, not 7.000000000000001
    True

    Raises:
        RecipeError: ``lowest`` is no part of the tokens.
    """
    if not 0 < lowest <= 1:
        raise RecipeError(
            f"signal 'prompt_confidence': lowest={lowest} is no part of the tokens.",
            "Give it above 0 and up to 1.",
        )
    found_B = torch.zeros(len(batch.turns.group_B), dtype=torch.float64)
    prompts = [_prompt(batch, b) for b in range(len(found_B))]
    texts: list[tuple[int, ...]] = sorted({prompt for prompt in prompts if len(prompt) > 1})
    if texts:
        rows = plain_rows(texts, [1] * len(texts))
        logp_RT = see.learner.score(rows)
        known: dict[tuple[int, ...], float] = {
            text: confidence(logp_RT[r][rows.mask_RT[r]], lowest) for r, text in enumerate(texts)
        }
        for b, prompt in enumerate(prompts):
            found_B[b] = known.get(prompt, 0.0)
    return Measured({"prompt_confidence": found_B})


def confidence(logp_N: Tensor, lowest: float) -> float:
    """exp of the mean of the lowest log-probabilities."""
    kept = max(1, ceil(lowest * len(logp_N) - 1e-9))
    return float(logp_N.double().sort().values[:kept].mean().exp())


def _prompt(batch: TrainingBatch, b: int) -> tuple[int, ...]:
    """The tokens before the first turn of a trajectory; none where it has no turn."""
    rows = batch.rows
    if not bool(batch.turns.mask_BK[b].any()):
        return ()
    end = int(rows.state_position_BK[b, 0]) + 1
    return tuple(rows.token_RT[rows.state_row_BK[b, 0], :end].tolist())
