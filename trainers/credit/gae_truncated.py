"""Generalised advantage estimation that values what a limit cut off."""

import dataclasses

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.credit.gae import gae
from turnwise.trainers.kit.groups import last_turn, signal


@component(
    "credit",
    "gae_truncated",
    paper="1712.00378",
    needs=("value", "last_value"),
    bias="biased: counts what would have come after the limit, which the return does not",
)
def gae_truncated(batch: TurnBatch, *, discount: float = 1.0, lam: float = 1.0) -> Tensor:
    """GAE in which a truncated trajectory goes on: its last turn also gets γ·V of the state it was cut in.

    δ_K = r_K + γ·V(s_{K+1}) − V(s_K) where a limit cut the trajectory, else as in ``gae``. Pardo et al. 2018,
    "Time limits in reinforcement learning" (partial-episode bootstrapping): right where the limit is not
    part of the task, else the agent learns that running out of turns does not matter.

    Worked by hand: r = [0, 1], V = [0.3, 0.5], cut in a state of value 0.2: A = [1.2 − 0.3, 1.2 − 0.5].

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"value": [[0.3, 0.5], [0.3, 0.5]], "last_value": [0.2, 0.2]}
    >>> rounded(gae_truncated(turn_batch([[0, 1], [0, 1]], truncated=[True, False], signals=signals)))
    [[0.9, 0.7], [0.7, 0.5]]
    """
    cut_BK = last_turn(batch.mask_BK) & batch.truncated_B[:, None]
    beyond_BK = batch.discount_BK(discount) * signal(batch, "last_value")[:, None] * cut_BK
    longer = dataclasses.replace(batch, reward_BK=batch.reward_BK + beyond_BK)
    return gae(longer, discount=discount, lam=lam)
