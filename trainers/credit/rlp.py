"""RLP: tokens of a thought are given what the thought foretold, against other thoughts at the same place."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.credit.rloo import rloo
from turnwise.trainers.kit.groups import signal
from turnwise.trainers.kit.token_credit import over_tokens, token_signal


@component(
    "credit", "rlp", paper="2510.01265", needs=("rlp", "token_thought"),
    bias="changes the objective: to how well thoughts foretell what the environment answers",
)  # fmt: skip
def rlp(batch: TurnBatch, *, weight: float = 1.0, outcome: float = 0.0) -> TokenCredit:
    """A = ``weight``·G/(G − 1)·(r − mean r) on the tokens of thoughts, over the G turns of a group that were played from one state.

    r is the signal `rlp`, which is a constant here; only thoughts have a gradient, and no deviation divides (Hatamizadeh et al. 2025).
    A thought that is alone at its state has 0. With ``outcome`` all tokens have that much of the leave-one-out advantage of the
    return beside it (ours), so that what is foretold is a small addition.

    Worked by hand: log .4, .3, .2 − log .25 are r = .47, .1823, −.2231.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"rlp": [[log(p / 0.25)] for p in (0.4, 0.3, 0.2)]}
    >>> thought = {"token_thought": [[1, 0]] * 3}
    >>> batch = turn_batch([[0]] * 3, states=[[5]] * 3, signals=signals, tokens=[[[1, 2]]] * 3, token_signals=thought)
    >>> rounded(rlp(batch).advantage_RT, 4)
    [[0.4904, 0.0], [0.0589, 0.0], [-0.5493, 0.0]]
    """
    place_BK = torch.stack([batch.group_B[:, None].expand_as(batch.state_BK), batch.state_BK], -1)[
        batch.mask_BK
    ]
    _, at_N = place_BK.unique(dim=0, return_inverse=True)
    r_N = signal(batch, "rlp")[batch.mask_BK]
    count_N = torch.bincount(at_N)[at_N].to(r_N.dtype)
    mean_N = r_N.new_zeros(len(r_N)).index_add_(0, at_N, r_N)[at_N] / count_N
    gain_BK = torch.zeros_like(batch.reward_BK)
    gain_BK[batch.mask_BK] = (r_N - mean_N) * count_N / (count_N - 1).clamp(min=1)
    thought_RT = token_signal(batch, "token_thought")
    given_RT = weight * over_tokens(gain_BK, batch) * thought_RT
    return TokenCredit(given_RT + outcome * over_tokens(rloo(batch), batch))
