"""GRPO-λ: eligibility traces."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import reverse_cumsum
from turnwise.trainers.kit.token_credit import of_turns_alone


@component("shape", "grpo_lambda", paper="2510.00194", bias="biased: turns with more to come weigh more")
def grpo_lambda(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, lam: float = 0.9, floor: float | None = None
) -> Tensor:
    """Trace of every turn: its own advantage, and with weight λ, λ², … those of the turns after it.

    The trace puts Σ_{l≤k} λ^{k−l} log π(a_l) where log π(a_k) stood, so turn l takes part in every later turn:
    A′_l = Σ_{k=l}^{K} λ^{k−l}·A_k, which over GRPO is A_i·Σ_{k=l}^{K} λ^{k−l}. Negative A are raised to ``floor`` if one
    is given (the paper: −0.1). Parthasarathi et al. 2025 with γ = 1.

    An interpretation: the paper has traces over tokens inside the importance ratio; this is their
    gradient at zero staleness, over turns, so advantages that differ within a turn are refused. λ = 0.9 is ours (0.99
    per token is reported).

    Worked by hand: R = 1, 0: A = ±0.70711; three turns 1 + 0.5 + 0.25, 1 + 0.5, 1.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 0, 1], [0]])
    >>> rounded(grpo_lambda(grpo(batch), batch, lam=0.5))
    [[1.237435, 1.060659, 0.707106], [-0.707106, 0.0, 0.0]]
    """
    advantage_BK = of_turns_alone(credit, "grpo_lambda", "traces whole turns")
    if floor is not None:
        advantage_BK = advantage_BK.clamp(min=floor)
    return reverse_cumsum(advantage_BK * batch.mask_BK, lam) * batch.mask_BK
