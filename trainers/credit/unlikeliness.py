"""Unlikeliness: rare successes are worth more than likely ones."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_size, group_z, over_turns, signal


@component(
    "credit",
    "unlikeliness",
    paper="2506.02355",
    needs=("logp", "tokens"),
    bias="biased: GRPO on returns that shrink with how likely the trajectory was among its peers",
)
def unlikeliness(batch: TurnBatch, *, beta: float = 0.25) -> Tensor:
    """GRPO, after the returns of likely trajectories are reduced.

    R′_i = R_i·(1 − β·rank_i/n), rank 0 for the least likely trajectory of the group (mean log-probability per
    token), n − 1 for the likeliest;  A = (R′ − mean R′)/(std R′ + 1e-6). He et al. 2025. Equal ones share
    their mean rank (ours). It is no shape: R′ enters the mean and the deviation that GRPO takes, which advantages that are
    already there no longer have in them.

    Worked by hand: log-probabilities −10, −30, −20, −40 give ranks 3, 1, 2, 0, so
    R = [1, 1, 0, 1] becomes [0.8125, 0.9375, 0, 1].

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"logp": [[-10], [-30], [-20], [-40]], "tokens": [[1], [1], [1], [1]]}
    >>> rounded(unlikeliness(turn_batch([[1], [1], [0], [1]], signals=signals)))
    [[0.268866], [0.537732], [-1.478762], [0.672165]]
    """
    mask_BK, group_B = batch.mask_BK, batch.group_B
    tokens_B = (signal(batch, "tokens") * mask_BK).sum(-1)
    likely_B = (signal(batch, "logp") * mask_BK).sum(-1) / tokens_B.clamp(min=1)
    peers_BB = (group_B[:, None] == group_B[None, :]).to(likely_B.dtype)
    above_BB = (likely_B[:, None] > likely_B[None, :]) + 0.5 * (likely_B[:, None] == likely_B[None, :])
    rank_B = (above_BB * peers_BB).sum(1) - 0.5
    reduced_B = batch.return_B * (1 - beta * rank_B / group_size(group_B))
    return over_turns(group_z(reduced_B, group_B), batch)
