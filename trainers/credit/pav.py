"""PAV: progress under a stronger prover, beside the policy's own advantage."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import following, returns_to_go, signal


@component(
    "credit",
    "pav",
    paper="2410.08146",
    needs=("value",),
    critic="returns",
    bias="biased: adds the progress that a best-of-K prover would see",
)
def pav(batch: TurnBatch, *, weight: float = 3.0, attempts: int = 4) -> Tensor:
    """Return-to-go minus value, plus how much a turn helped a prover that tries ``attempts`` times.

    A_k = G_k − V(s_k) + α·(V_μ(s_{k+1}) − V_μ(s_k)),  V_μ = 1 − (1 − V)^K, V = the return's own value after the
    last turn. Setlur et al. 2024: with the policy itself as prover nothing changes, with an all too strong
    one there is no progress to see. α = 3 was theirs for a 9B model, K = 4. Ours: baseline V(s_k), values
    clamped to [0, 1].

    Worked by hand: V = 0.4, 0.5, 0.3 and 0.6 at the end: progress under best of 4 is 0.0671, −0.1776, 0.2145.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(pav(turn_batch([[0, 0, 0.6]], signals={"value": [[0.4, 0.5, 0.3]]})))
    [[0.4013, -0.4328, 0.9435]]
    """
    mask_BK, value_BK = batch.mask_BK, signal(batch, "value") * batch.mask_BK
    prover_BK = 1 - (1 - value_BK.clamp(0, 1)) ** attempts
    proven_B = 1 - (1 - batch.return_B.clamp(0, 1)) ** attempts
    progress_BK = following(prover_BK, proven_B, mask_BK) - prover_BK
    return (returns_to_go(batch) - value_BK + weight * progress_BK) * mask_BK
