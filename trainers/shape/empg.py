"""EMPG: confident turns weigh more, and turns that lead to clarity get a bonus."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import following, signal
from turnwise.trainers.kit.token_credit import changed, tokens_of


@component(
    "shape",
    "empg",
    paper="2509.09265",
    needs=("entropy",),
    bias="biased: weighted by a turn's entropy within the batch, plus a bonus for certainty",
)
def empg(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, sharpness: float = 1.0, clarity: float = 0.1
) -> Tensor | TokenCredit:
    """Entropy-modulated policy gradients: A, turn by turn reweighted by certainty.

    H̃ = entropy of the turn, rescaled to [0, 1] over the batch; g = exp(−kH̃)/mean exp(−kH̃);
    f_k = exp(−kH̃_{k+1}), 0 at the last turn; A′ = A·g_k + ζ·f_k minus its mean over all turns (over all tokens where A
    differs within a turn). Wang et al. 2025, there over GRPO; k = ``sharpness`` for both and ζ = ``clarity`` are a
    third party's values, the paper tunes them.

    Worked by hand: A = 1, −1 (here ±0.70711), H = [0.2, 0.5] and [0.8]: H̃ = 0, ½, 1;
    g = 1.51943, 0.92158, 0.55897; f = 0.60653, 0, 0.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0]], signals={"entropy": [[0.2, 0.5], [0.8]]})
    >>> rounded(empg(grpo(batch), batch))
    [[0.671236, 0.187838], [-0.859074, 0.0]]
    """
    mask_BK = batch.mask_BK
    H_BK, turns = signal(batch, "entropy"), mask_BK.sum().clamp(min=1)
    if not mask_BK.any():
        return credit
    low, high = H_BK[mask_BK].min(), H_BK[mask_BK].max()
    rescaled_BK = ((H_BK - low) / (high - low).clamp(min=1e-6)).clamp(0, 1)  # all equal: all 0
    certain_BK = torch.exp(-sharpness * rescaled_BK) * mask_BK
    weight_BK = certain_BK / (certain_BK.sum() / turns)
    bonus_BK = clarity * following(certain_BK, torch.zeros_like(batch.return_B), mask_BK)
    here = mask_BK if isinstance(credit, Tensor) else tokens_of(batch).mask_RT

    def modulated(A: Tensor, weight: Tensor, bonus: Tensor) -> Tensor:
        found = A * weight + bonus
        return (found - found.sum() / here.sum().clamp(min=1)) * here

    return changed(credit, batch, modulated, weight_BK, bonus_BK)
