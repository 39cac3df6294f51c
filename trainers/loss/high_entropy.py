"""PPO's clip on the tokens at which the policy hesitates."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, surrogate, token_mean


@component(
    "loss",
    "high_entropy",
    objective="the credit rule's, by PPO's surrogate at the tokens of the highest entropy alone",
    paper="2506.01939",
    whole=True,
    slope="own",
)
def high_entropy(batch: WholeBatch, *, share: float = 0.2, low: float = 0.2, high: float = 0.2) -> WholeLoss:
    """The clipped surrogate on the ``share`` of the minibatch's tokens with the highest entropy; the others have no loss.

    Kept are tokens with H ≥ the (1 − share) quantile of H. *Beyond the 80/20 rule* (Wang et al. 2025), eq. 5. Denominators
    count all tokens. The slope of a kept token is −A, of another 0.

    Metrics: ``entropy_kept`` (mean entropy of the kept tokens), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand: of the entropies 0.1, 0.9, 0.3, 2, 0.05, 0.4, 1.5, 0.2, 0.6, 0.7 the quantile is 1.02, so that the fourth
    and the seventh are kept.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> hesitation = [[0.1, 0.9, 0.3, 2, 0.05, 0.4, 1.5, 0.2, 0.6, 0.7]]
    >>> batch = whole_batch([[-1] * 10], [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]], entropy=hesitation)
    >>> round(10 * high_entropy(batch).loss.item(), 6)
    -11.0
    """
    mask_RT, log_ratio_RT = batch.mask_RT, log_ratio(batch)
    entropy_N = batch.entropy_RT.detach()[mask_RT]
    kept_RT = torch.zeros_like(mask_RT)
    kept_RT[mask_RT] = entropy_N >= torch.quantile(entropy_N, 1 - share) if len(entropy_N) else False
    loss_RT = surrogate(log_ratio_RT.exp(), batch.advantage_RT, 1 - low, 1 + high)
    metrics = {
        "entropy_kept": token_mean(batch.entropy_RT, kept_RT),
        "kl_old": k3_of_old(log_ratio_RT, mask_RT),
    }
    return WholeLoss((batch.weight_RT * loss_RT * kept_RT).sum(), metrics)
