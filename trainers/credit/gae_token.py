"""PPO's generalised advantage estimation, token by token."""

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.credit.gae import gae
from turnwise.trainers.kit.token_credit import sequences, token_signal


@component("credit", "gae_token", paper="1707.06347", needs=("token_value",), bias="unbiased")
def gae_token(batch: TurnBatch, *, discount: float = 1.0, lam: float = 1.0) -> TokenCredit:
    """Every sampled token is a step of its own; a turn's reward is paid on its last token.

    δ_t = r_t + γ·V_{t'} − V_t;  A_t = δ_t + γλ·A_{t'};  t' is the next *sampled* token: what the environment says
    in between is skipped and not discounted. Schulman et al. 2017, eq. 11–12 (GAE: 1506.02438, eq. 16).

    ``token_value`` is V of the text before each sampled token. With γ = λ = 1 it is unbiased whatever V is. Left
    out: whitening over the batch.

    Worked by hand: one turn of two tokens and one of one, paid 1 at the end; V = 0.2, 0.4, 0.6, λ = 0.95.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> values = {"token_value": [[0.2, 0.4, 0.6]]}
    >>> batch = turn_batch([[0, 1]], tokens=[[[1, 2], [3]]], token_signals=values)
    >>> rounded(gae_token(batch, lam=0.95).advantage_RT)
    [[0.751, 0.58, 0.4]]
    """
    value_RT = token_signal(batch, "token_value")
    at = sequences(batch)
    steps = TurnBatch(
        at.at_ends(batch.reward_BK),
        at.mask_BM,
        batch.group_B,
        batch.truncated_B,
        at.turn_BM,
        {"value": at.pack(value_RT)},
    )
    return TokenCredit(at.unpack(gae(steps, discount=discount, lam=lam), value_RT))
