"""PRIME: an implicit process reward for every token, and the outcome on the last one."""

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import (
    alone,
    group_size,
    group_sum,
    last_turn,
    peers_mean,
    reverse_cumsum,
    whiten,
)
from turnwise.trainers.kit.token_credit import sequences, token_signal


@component(
    "credit",
    "prime",
    paper="2502.01456",
    needs=("token_implicit",),
    bias="biased: adds implicit rewards, scaled and whitened over a batch that the token itself belongs to",
)
def prime(batch: TurnBatch, *, process: float = 5.0, outcome: float = 5.0) -> TokenCredit:
    """Leave-one-out of the tokens' implicit rewards plus leave-one-out of the returns, summed from each token on.

    ``token_implicit`` is r_t = β(log π_φ − log π_ref) of a model φ that the run trains to tell success from failure
    (cross-entropy of σ(Σ_t log π_φ/π_ref·β)). r is divided by max |Σ_{l≥t} r_l| of the batch + 1e-6; then
    c_t = a·(n·r_t − Σ_j mean_t r_{j,t})/(n − 1) + b·(R − mean of peers' R on the last token), A = Σ_{l≥t} c_l whitened
    over the batch's tokens. Cui et al. 2025, eq. 5 and the released code, whose coefficients 5 and 5 these are.

    The mean over j has the own trajectory in it, as released. Left out: the oversampling of prompts (a filter).

    Worked by hand: r = 0.02, 0.01, −0.005 | −0.01, −0.02, R = 1, 0; summed 16.666, 8.889, 4.4445 | −12.78, −10.555.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> implicit = {"token_implicit": [[0.02, 0.01, -0.005], [-0.01, -0.02]]}
    >>> batch = turn_batch([[1], [0]], tokens=[[[1, 2, 3]], [[1, 2]]], token_signals=implicit)
    >>> rounded(prime(batch).advantage_RT, 4)
    [[1.21, 0.5962, 0.2455], [-1.1135, -0.9382, 0.0]]
    """
    implicit_RT = token_signal(batch, "token_implicit")
    at = sequences(batch)
    reward_BM = at.pack(implicit_RT)
    largest = reverse_cumsum(reward_BM).abs().amax() if at.mask_BM.any() else 0.0
    reward_BM = reward_BM / (largest + 1e-6)
    mean_B = reward_BM.sum(1) / at.mask_BM.sum(1).clamp(min=1)
    n_B = group_size(batch.group_B)
    others_B = (n_B - 1).clamp(min=1)
    step_BM = (reward_BM * n_B[:, None] - group_sum(mean_B, batch.group_B)[:, None]) / others_B[:, None]
    outcome_B = batch.return_B - peers_mean(batch.return_B, batch.group_B)
    paid_BM = process * step_BM * at.mask_BM + outcome * outcome_B[:, None] * last_turn(at.mask_BM)
    paid_BM = paid_BM.masked_fill(alone(batch.group_B)[:, None], 0.0)
    advantage_BM = whiten(reverse_cumsum(paid_BM) * at.mask_BM, at.mask_BM) * at.mask_BM
    return TokenCredit(at.unpack(advantage_BM, implicit_RT))
