"""No correction."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch


@component("correction", "none")
def none(batch: TokenBatch) -> Tensor:
    """Weight 1 on every sampled token: engine and trainer are taken to agree.

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(none(token_batch([[-1, -1]], behaviour_logp=[[-1.2, -2]])))
    [[1.0, 1.0]]
    """
    return batch.mask_RT.to(batch.old_logp_RT.dtype)
