"""GRPO-λ: eligibility traces on GRPO's advantage."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, over_turns, reverse_cumsum


@component(
    "credit",
    "grpo_lambda",
    paper="2510.00194",
    bias="biased: GRPO's standardisation, and turns with more to come weigh more",
)
def grpo_lambda(batch: TurnBatch, *, lam: float = 0.9, floor: float | None = None) -> Tensor:
    """GRPO's advantage, times how much of the trajectory's trace each turn takes part in.

    The trace puts Σ_{l≤k} λ^{k−l} log π(a_l) where log π(a_k) stood, so turn l takes part in every later turn:
    A_{i,l} = A_i·Σ_{k=l}^{K} λ^{k−l}. Negative A_i are raised to ``floor`` if one is given (the paper: −0.1).
    Parthasarathi et al. 2025 with γ = 1.

    An interpretation: the paper has traces over tokens inside the importance ratio; this is their
    gradient at zero staleness, over turns. λ = 0.9 is ours (0.99 per token is reported).

    Worked by hand: R = 1, 0: A = ±0.70711; three turns 1 + 0.5 + 0.25, 1 + 0.5, 1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo_lambda(turn_batch([[0, 0, 1], [0]]), lam=0.5))
    [[1.237435, 1.060659, 0.707106], [-0.707106, 0.0, 0.0]]
    """
    advantage_B = group_z(batch.return_B, batch.group_B)
    if floor is not None:
        advantage_B = advantage_B.clamp(min=floor)
    trace_BK = reverse_cumsum(batch.mask_BK.to(advantage_B.dtype), lam)
    return over_turns(advantage_B, batch) * trace_BK
