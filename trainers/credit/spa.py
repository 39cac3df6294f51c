"""SPA-RL: the outcome redistributed over the turns by a learned estimate of progress."""

import dataclasses

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.credit.return_to_go import return_to_go
from turnwise.trainers.kit.groups import signal


@component(
    "credit",
    "spa",
    paper="2505.20732",
    needs=("progress", "valid"),
    bias="biased: pays for estimated progress and for valid actions instead of the rewards",
)
def spa(batch: TurnBatch, *, progress: float = 1.0, grounding: float = 0.5) -> Tensor:
    """Return-to-go of α·(progress of the turn) + β·(its action was possible), against that of peers.

    ``progress`` is ĉ_k of a head that the run trains on (Σ_k ĉ_k − R)²; ``valid`` is 1 where the environment accepted
    the action. r_k = α·ĉ_k + β·g_k. Wang et al. 2025, eq. 3–6.

    Ours: leave-one-out baselines of the return-to-go (``return_to_go``) where the paper has PPO's critic. Left
    out: released variants that overwrite or rescale r.

    Worked by hand: ĉ = 0.1, 0.3, 0.4, g = 1, 0, 1: r = 0.6, 0.3, 0.9, returns 1.8, 1.2, 0.9; a peer without any.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"progress": [[0.1, 0.3, 0.4], [0]], "valid": [[1, 0, 1], [0]]}
    >>> rounded(spa(turn_batch([[0, 0, 1], [0]], signals=signals)))
    [[1.8, 1.2, 0.9], [-1.8, 0.0, 0.0]]
    """
    paid_BK = progress * signal(batch, "progress") + grounding * signal(batch, "valid")
    return return_to_go(dataclasses.replace(batch, reward_BK=paid_BK * batch.mask_BK))
