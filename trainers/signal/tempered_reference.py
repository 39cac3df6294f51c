"""RAPO's reference: held as it is after success, flattened after failure, and normalised over the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, SignalContext


def _exact(p: ExactProcess) -> dict[str, Tensor]:
    """The vocabulary is the process's actions, and the reference the policy itself, at the usual powers."""
    logp_NKA = p.logits_SA.detach().log_softmax(-1)[p.state_NK]
    power_N = torch.where(p.return_N >= 1, 1.0, 0.5).double()
    tempered_NKA = tempered(logp_NKA, power_N[:, None])
    return {"token_tempered_reference": tempered_NKA.gather(-1, p.action_NK[..., None])[..., 0] * p.mask_NK}


@component(
    "signal", "tempered_reference", gives=("token_tempered_reference",), needs=("reference",), reads=("forward pass", "outcomes"),
    paper="2510.03865", exact=_exact,
)  # fmt: skip
def tempered_reference(
    see: SignalContext,
    batch: TrainingBatch,
    groups: Sequence[Group],
    *,
    failure: float = 0.5,
    success: float = 1.0,
) -> Measured:
    """log π̂ of each sampled token, π̂ = π_ref^φ / Σ_v π_ref(v)^φ over the vocabulary, in nats.

    φ is ``success`` for trajectories that solved their task and ``failure`` for others, so that what failed is held to a flatter
    reference. RAPO (2025): φ rises with the reward; its values are ours.

    Worked by hand: π_ref = .5, .3, .2 and φ = ½.

    >>> [round(x, 4) for x in tempered(torch.tensor([0.5, 0.3, 0.2]).log(), torch.tensor(0.5)).exp().tolist()]
    [0.4154, 0.3218, 0.2628]

    Raises:
        RecipeError: a power is below 0.
    """
    if min(failure, success) < 0:
        raise RecipeError(
            f"signal 'tempered_reference': failure={failure:g}, success={success:g} would prefer what the reference avoids.",
            "Give powers of 0 or more (0.5 and 1).",
        )
    rows = batch.rows
    found_RT = torch.zeros(rows.mask_RT.shape)
    power_R = torch.where(batch.success_B[rows.trajectory_R], success, failure)

    def read(seen: PassPart) -> None:
        for place in seen.places():
            logp_NV = seen.distributions(place).double()
            token_N = seen.rows.token_RT[place].to(logp_NV.device)
            power_N = power_R[seen.index_N][:, None].expand_as(place)[place].to(logp_NV.device)
            told_N = tempered(logp_NV, power_N).gather(-1, token_N[:, None])[:, 0]
            row_N, column_N = place.nonzero(as_tuple=True)
            found_RT[seen.index_N[row_N], column_N] = told_N.to(found_RT.dtype).cpu()

    see.learner.read(rows, [read], reference=True)
    return Measured(token={"token_tempered_reference": found_RT})


def tempered(logp: Tensor, power: Tensor) -> Tensor:
    """Log-probabilities of the power of a distribution over the last axis."""
    return (power[..., None] * logp).log_softmax(-1)
