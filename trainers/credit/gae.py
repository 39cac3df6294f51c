"""Generalised advantage estimation with one step per turn."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import following, reverse_cumsum, signal


@component("credit", "gae", paper="1506.02438", needs=("value",), bias="unbiased")
def gae(batch: TurnBatch, *, discount: float = 1.0, lam: float = 1.0) -> Tensor:
    """Advantages from a learned value of the state before each turn.

    δ_k = r_k + γ·V(s_{k+1}) − V(s_k);  A_k = δ_k + γλ·A_{k+1};  V = 0 after the last turn.
    Schulman et al. 2016, eq. 16, one step per turn as in VAGEN's turn-wise mode (2510.16907).

    With λ = 1 and γ = 1 it is unbiased whatever V is; λ < 1 trades that for less variance and is biased
    by as much as V is wrong. A limit counts as an end (``gae_truncated`` sees further). Left out: whitening of
    the advantages over the batch.

    Args:
        batch: needs ``signals["value"]``, V(s_k) of shape (B, K).
        discount: γ after an act; after a turn of kind ``memory``, which takes no time, γ is 1.
        lam: λ after every turn.

    Worked by hand: r = [0, 1], V = [0.3, 0.5], λ = 0.95: δ = [0.2, 0.5], A = [0.2 + 0.95·0.5, 0.5].

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1]], signals={"value": [[0.3, 0.5]]})
    >>> rounded(gae(batch, lam=0.95)), rounded(gae(batch, discount=0.95))
    ([[0.675, 0.5]], [[0.65, 0.5]])
    """
    value_BK, discount_BK = signal(batch, "value") * batch.mask_BK, batch.discount_BK(discount)
    next_BK = following(value_BK, value_BK.new_zeros(len(value_BK)), batch.mask_BK)
    delta_BK = (batch.reward_BK + discount_BK * next_BK - value_BK) * batch.mask_BK
    return reverse_cumsum(delta_BK, discount_BK * lam) * batch.mask_BK
