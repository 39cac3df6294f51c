"""R3: the rise of the right answer's log-probability, weighed by how much the reasoning matters to each of its tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of, wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import after_reasoning, forced, right_answers, spread, without_reasoning


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"r3": wave(p), "r3_spread": 0.3 * turns_of(p)}


@component(
    "signal", "r3", paper="2506.13351", gives=("r3", "r3_spread"), reads=("gold", "context"), stand_in=_stand_in,
)  # fmt: skip
def r3(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """Σ_j w_j·(log π(y_j | reasoning) − log π(y_j | task alone)) on every turn, and ``r3_spread``, max_j σ_j of its group.

    σ_j is the deviation (by n) of log π(y_j | reasoning) over the group, so that only tokens count whose likelihood depends on the
    reasoning: w_j = σ_j/Σσ (ours: the paper leaves the form open). Where no token depends on it, R3 is 0. The reasoning reflection
    reward of DRO (Xu et al. 2025); the answer and the reasoning are those of `rlpr`, and a masked reasoning is none. Left out: the
    propagation of uncertainty to later tokens, the factor for lengths, the filter by rank; that by spread is `filter: r3`.

    Worked by hand: p = .9 .2 .95 and .9 .6 .96, .85 .1 .9 without reasoning; σ = 0, .5493, .0052.

    >>> p_NJ, bare_J = torch.tensor([[0.9, 0.2, 0.95], [0.9, 0.6, 0.96]]), torch.tensor([0.85, 0.1, 0.9])
    >>> [round(x, 4) for x in reflected(p_NJ.double().log(), bare_J.double().log().expand(2, 3)).tolist()]
    [0.6871, 1.7755]
    """
    answers = right_answers(see, groups)
    told = forced(see.learner.score, after_reasoning(see, batch), answers, see.context)
    bare = forced(see.learner.score, without_reasoning(batch), answers, see.context)
    found, widest = dict[int, float](), dict[int, float]()
    for g in batch.turns.group_B.unique().tolist():
        members = [b for b in (batch.turns.group_B == g).nonzero().flatten().tolist() if b in told]
        if members:
            told_NJ, bare_NJ = (torch.stack([of[b] for b in members]) for of in (told, bare))
            found |= dict(zip(members, reflected(told_NJ, bare_NJ).tolist(), strict=True))
            widest |= dict.fromkeys(members, told_NJ.std(0, correction=0).max().item())
    return Measured({"r3": spread(batch, found), "r3_spread": spread(batch, widest)})


def reflected(told_NJ: Tensor, bare_NJ: Tensor) -> Tensor:
    """R3 of the members of a group, (N,)."""
    sigma_J = told_NJ.std(0, correction=0)
    total = sigma_J.sum()
    return ((told_NJ - bare_NJ) * sigma_J).sum(1) / total if total > 0 else told_NJ.new_zeros(len(told_NJ))
