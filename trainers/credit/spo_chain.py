"""SPO-chain: segments between unsure turns, each worth the difference of two Monte-Carlo values."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import following, reverse_cumsum, signal


@component(
    "credit",
    "spo_chain",
    paper="2505.23564",
    needs=("fork_value", "logp", "tokens"),
    bias="biased: turns that the policy is sure of learn nothing, and what was sampled decides where segments end",
)
def spo_chain(batch: TurnBatch, *, sure: float = 0.9) -> Tensor:
    """Value where the segment ends minus value where it begins, plus what it was paid, given to its first turn.

    A segment begins at each turn whose sampled tokens had a mean probability exp(mean log p) below ``sure`` and lasts
    until the next such turn. A = Σ r + V(next segment) − V(segment), 0 on the turns that the policy was sure of. V are
    means of fresh rollouts (strategy ``vine``). Guo et al. 2025, §4.1, with masked tokens.

    An interpretation: the paper cuts at every fifth token of probability under 0.9; here turns are the units,
    and every unsure one begins a segment. With ``sure`` above 1 this is ``vine``.

    Worked by hand: V = 5/9, 8/9, 3/9, paid 1 at the end; a fourth of the policy's mind at turns 1 and 3, sure at 2.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"fork_value": [[5 / 9, 8 / 9, 3 / 9]], "tokens": [[1, 2, 1]]}
    >>> signals["logp"] = [[log(0.25), 2 * log(0.95), log(0.25)]]
    >>> rounded(spo_chain(turn_batch([[0, 0, 1]], signals=signals)), 4)
    [[-0.2222, 0.0, 0.6667]]
    >>> rounded(spo_chain(turn_batch([[0, 0, 1]], signals=signals), sure=1.1), 4)
    [[0.3333, -0.5556, 0.6667]]
    """
    mask_BK, value_BK = batch.mask_BK, signal(batch, "fork_value")
    likely_BK = (signal(batch, "logp") / signal(batch, "tokens").clamp(min=1)).exp()
    cut_BK = (likely_BK < sure) & mask_BK
    none_B = value_BK.new_zeros(len(value_BK))
    next_cut_BK = following(cut_BK.to(value_BK.dtype), none_B, mask_BK)
    paid_BK = batch.reward_BK + following(value_BK * cut_BK, none_B, mask_BK)
    reached_BK = reverse_cumsum(paid_BK * mask_BK, 1 - next_cut_BK)
    return (reached_BK - value_BK) * cut_BK
