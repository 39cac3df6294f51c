"""Off-policy guidance whose unknown author is taken for half the policy, half certain."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "rl_plus",
    objective="the likelihood of demonstrations by a ratio to a mixture, most where they are unlikely",
    slope="-c·A",
    paper="2508.00222",
)
def rl_plus(batch: TokenBatch, *, focus: float = 0.5) -> TokenLoss:
    """−A·sg[(1 − π)^focus]·2π/(π_old + π_ω), π_ω = (π_old + 1)/2: for tokens that someone else chose.

    RL-PLUS (Dong et al. 2025), eq. 5 to 8: a ratio against a mixture is bounded even where π_old is tiny, and the factor
    turns to tokens that are right and unlikely. For a guide's or a source's tokens; no clip. The paper's
    episode stands inside of the group, against the mean of the policy's own rows: guide `acnchor`, credit rule `rl_plus`.

    Metric: ``ratio_mixed`` (mean ratio).

    Worked by hand with π_old = 0.2 and π = 0.3: π_ω = 0.6, the ratio 0.75, the factor √0.7 = 0.836660.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(rl_plus(token_batch([[log(0.3)]], [[1]], old_logp=[[log(0.2)]])).loss_RT)
    [[-0.627495]]
    """
    now_RT, old_RT = batch.logp_RT.exp(), batch.old_logp_RT.exp()
    ratio_RT = 2 * now_RT / (old_RT + (old_RT + 1) / 2)
    factor_RT = (1 - now_RT.detach()).clamp(min=0) ** focus
    loss_RT = -batch.advantage_RT * factor_RT * ratio_RT * batch.mask_RT
    return TokenLoss(loss_RT, {"ratio_mixed": token_mean(ratio_RT, batch.mask_RT)})
