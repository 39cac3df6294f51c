"""Bi-level GAE: turns are credited first, then the tokens of each turn."""

import dataclasses

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.credit.gae import gae
from turnwise.trainers.kit.groups import reverse_cumsum
from turnwise.trainers.kit.token_credit import sequences, token_signal


@component(
    "credit",
    "gae_bilevel",
    paper="2510.16907",
    needs=("token_value",),
    bias="biased: discounts from turn to turn",
)
def gae_bilevel(
    batch: TurnBatch, *, turn_discount: float = 0.95, discount: float = 1.0, lam: float = 1.0
) -> TokenCredit:
    """GAE over turns by the value at their last tokens, whose λ-returns are then spread over each turn's tokens.

    Turns: Â_k = r_k + γ_turn·V_{k+1} − V_k + γ_turn·λ·Â_{k+1}, V_k at turn k's last token. Tokens: GAE with γ and λ
    inside a turn, whose last token is paid Â_k + V_k and is followed by nothing. VAGEN (Wang et al. 2025), after
    RAGEN (2504.20073).

    Turn ends are known, not looked for in the rewards (which loses unpaid turns in RAGEN's code). Left out:
    whitening. With all three options at 1 it is ``gae_token`` with λ = 1, and unbiased.

    Worked by hand, two turns of two tokens, 1 paid at the end: turn returns 0.95, 1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> values = {"token_value": [[0.2, 0.3, 0.4, 0.5]]}
    >>> batch = turn_batch([[0, 1]], tokens=[[[1, 2], [3, 4]]], token_signals=values)
    >>> rounded(gae_bilevel(batch).advantage_RT), rounded(gae_bilevel(batch, lam=0.9).advantage_RT)
    ([[0.75, 0.65, 0.6, 0.5]], [[0.64225, 0.6025, 0.55, 0.5]])
    """
    value_RT = token_signal(batch, "token_value")
    at = sequences(batch)
    value_BM = at.pack(value_RT)
    end_BK = value_BM.new_zeros(batch.reward_BK.shape).scatter_add_(1, at.turn_BM, value_BM * at.last_BM)
    turns = dataclasses.replace(batch, signals={"value": end_BK})
    paid_BM = at.at_ends(gae(turns, discount=turn_discount, lam=lam) + end_BK)
    next_BM = value_BM.roll(-1, 1) * ~at.last_BM
    delta_BM = (paid_BM + discount * next_BM - value_BM) * at.mask_BM
    inside_BM = discount * lam * (~at.last_BM).to(value_BM.dtype)
    return TokenCredit(at.unpack(reverse_cumsum(delta_BM, inside_BM), value_RT))
