"""PPR: a judge scores each turn by principles; ReNorm ties the scores to how the episode ended."""

import dataclasses

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.credit.return_to_go import return_to_go
from turnwise.trainers.kit.groups import last_turn, signal


@component(
    "credit",
    "ppr",
    paper="2509.25598",
    needs=("principle",),
    bias="biased: pays a judge's scores, moved by the outcome, for every turn that is played",
)
def ppr(batch: TurnBatch, *, shift: float = 1.0) -> Tensor:
    """Return-to-go of ReNorm's process rewards, against that of peers.

    p̂_k = p_k + R − β on every turn but the last, which gets R, the return. ``principle`` is p_k ∈ [0, 1], the share of the
    principles for turn k that a judge finds kept (the recipe's ``judge``; what cannot be read counts 0). A success
    makes every p̂ ≥ 0, a failure ≤ 0. Xu et al. 2025, eq. 4.

    Ours: leave-one-out baselines of the return-to-go where the paper has PPO's critic. The reward part ``renorm``
    does the same with one of the environment's own reward components.

    Worked by hand: p = 0.8, 0.4: R = 1 gives 0.8, 0.4, 1; R = 0 gives −0.2, −0.6, 0; returns 2.2, 1.4, 1 | −0.8, −0.6, 0.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> scores = {"principle": [[0.8, 0.4, 0.9], [0.8, 0.4, 0.9]]}
    >>> rounded(ppr(turn_batch([[0, 0, 1], [0, 0, 0]], signals=scores)))
    [[3.0, 2.0, 1.0], [-3.0, -2.0, -1.0]]
    """
    R_B1, last_BK = batch.return_B[:, None], last_turn(batch.mask_BK)
    early_BK = signal(batch, "principle") + R_B1 - shift
    paid_BK = R_B1.where(last_BK, early_BK) * batch.mask_BK
    return return_to_go(dataclasses.replace(batch, reward_BK=paid_BK))
