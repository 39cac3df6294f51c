"""Off-policy guidance with a shaped weight: what the policy finds unlikely is learned first."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "luffy",
    objective="the probability of demonstrations, shaped by p/(p + γ), which counts unlikely tokens most",
    slope="-c·A",
    paper="2504.14945",
)
def luffy(batch: TokenBatch, *, gamma: float = 0.1) -> TokenLoss:
    """−A·f(π), f(π) = π/(π + γ): for tokens that someone else chose, whose own probability is taken to be 1.

    LUFFY (Yan et al. 2025), eq. 8 and 9. The slope in log π is −A·π·γ/(π + γ)², largest where π = γ: neither sure tokens nor
    hopeless ones move much. For the tokens of a guide or a source; on the policy's own samples it is no policy gradient.

    Metric: ``taken_up`` (mean of f, the share of the guidance that is learned).

    Worked by hand with π = 0.1 and 0.9: ½ and 0.9.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(luffy(token_batch([[log(0.1), log(0.9)]], [[1, 1]])).loss_RT)
    [[-0.5, -0.9]]

    Raises:
        RecipeError: gamma is not above 0.
    """
    if gamma <= 0:
        raise RecipeError(
            f"loss 'luffy': gamma={gamma} takes away every slope.", "Give gamma above 0, such as 0.1."
        )
    p_RT = batch.logp_RT.exp()
    shaped_RT = p_RT / (p_RT + gamma)
    loss_RT = -batch.advantage_RT * shaped_RT * batch.mask_RT
    return TokenLoss(loss_RT, {"taken_up": token_mean(shaped_RT, batch.mask_RT)})
