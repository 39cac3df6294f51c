"""The likelihood of what a guide or a source had written, whatever its advantage."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "expo",
    objective="the likelihood of self-explanations, beside the recipe's own objective",
    slope="own",
    paper="2507.02834",
)
def expo(batch: TokenBatch) -> TokenLoss:
    """−log π of each token, for the tokens of the guide `expo`: `guide: [{name: expo, loss: [{name: expo, weight: 0.1}], correction: none}]`.

    ExPO (2025), GRPO form: L = L_GRPO − β·log π(c, a | q), c an explanation that the policy wrote when it was told the answer a. β is the
    weight of the loss; the paper takes it down to 0: `schedule: {guide.expo.loss.expo.weight: {name: linear, to: 0}}`.

    Metric: ``explanation_nll`` (mean).

    Worked by hand with log π = −0.4 and −2.0, mean −1.2: the loss 1.2 and, with β = 0.1, 0.12, whatever the advantages.

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> loss = expo(token_batch([[-0.4, -2.0]], [[5.0, 0.0]]))
    >>> rounded(loss.loss_RT), round(0.1 * loss.metrics["explanation_nll"].item(), 6)
    ([[0.4, 2.0]], 0.12)
    """
    loss_RT = -batch.logp_RT * batch.mask_RT
    return TokenLoss(loss_RT, {"explanation_nll": token_mean(loss_RT, batch.mask_RT)})
