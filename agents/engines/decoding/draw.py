"""Draw tokens from logits, each row with its own settings and its own random number."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.agents.core import Sampling


def draw(
    logits_BV: Tensor, sampling: Sequence[Sampling], uniform: Sequence[float]
) -> tuple[list[int], list[float]]:
    """One token per row by inverting the distribution function at ``uniform``, and its log-probability.

    One number per token keeps the draw independent of the batch. Sums are in float64, so that a large
    vocabulary's tail is not lost to rounding.

    >>> logits = torch.tensor([[0.0, 0.0, 0.0, 0.0]])
    >>> draw(logits, [Sampling()], [0.6])[0]
    [2]
    """
    device = logits_BV.device
    temperature_B = torch.tensor([s.temperature or 1.0 for s in sampling], device=device)
    logits_BV = logits_BV / temperature_B[:, None]
    if any(s.top_p < 1 for s in sampling):
        logits_BV = _nucleus(logits_BV, torch.tensor([s.top_p for s in sampling], device=device))
    logp_BV = logits_BV.log_softmax(-1)
    cdf_BV = logp_BV.double().exp().cumsum(-1)
    threshold_B = torch.tensor(uniform, dtype=torch.float64, device=device) * cdf_BV[:, -1]
    token_B = torch.searchsorted(cdf_BV, threshold_B[:, None], right=True)[:, 0].clamp(
        max=cdf_BV.shape[1] - 1
    )
    greedy_B = torch.tensor([s.temperature == 0 for s in sampling], device=device)
    token_B = torch.where(greedy_B, logp_BV.argmax(-1), token_B)
    logp_B = logp_BV.gather(-1, token_B[:, None])[:, 0]
    return token_B.tolist(), logp_B.tolist()


def _nucleus(logits_BV: Tensor, top_p_B: Tensor) -> Tensor:
    """Keep the fewest tokens whose probability reaches ``top_p``."""
    sorted_BV, order_BV = logits_BV.sort(-1, descending=True)
    p_BV = sorted_BV.softmax(-1)
    before_BV = p_BV.cumsum(-1) - p_BV
    cut_BV = (before_BV >= top_p_B[:, None]) & (top_p_B < 1)[:, None]
    return logits_BV.masked_fill(torch.zeros_like(cut_BV).scatter(-1, order_BV, cut_BV), -torch.inf)
