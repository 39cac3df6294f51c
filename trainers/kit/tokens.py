"""Arithmetic that losses, corrections and reducers share: ratios, sums per turn and per trajectory."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from turnwise.trainers.core import RowMask, TokenBatch, WholeBatch

Level: TypeAlias = Literal["token", "turn", "trajectory"]
LOG_RATIO_LIMIT = 20.0  # exp(20) is as good as infinite, and finite


def log_ratio(batch: TokenBatch | WholeBatch) -> Tensor:
    """log π − log π_old, clamped to ±20 and 0 off the mask, (R, T)."""
    return bounded(batch.logp_RT - batch.old_logp_RT, batch.mask_RT)


def bounded(log_ratio_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """Clamped to ±20 and 0 off the mask, (R, T)."""
    return log_ratio_RT.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).masked_fill(~mask_RT, 0.0)


def chosen(where: Tensor, yes: float, no: float, like: Tensor) -> Tensor:
    """One number or the other, in the precision of ``like``."""
    return torch.where(where, like.new_tensor(yes), like.new_tensor(no))


def token_mean(x_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """Mean over the sampled tokens, without gradient: a metric."""
    return (x_RT.detach() * mask_RT).sum() / mask_RT.sum().clamp(min=1)


def units(rows: RowMask | TokenBatch | WholeBatch, level: Level) -> tuple[Tensor, int]:
    """Return the unit of each sampled token, numbered from 0 (-1 off the mask), and the number of units.

    A trajectory may lie in several rows, and so may a turn: its unit is the same in all of them.
    """
    mask_RT = rows.mask_RT
    trajectory_RT = rows.trajectory_R[:, None].expand_as(mask_RT)
    if level == "token":
        key = torch.arange(int(mask_RT.sum()), device=mask_RT.device)
    elif level == "trajectory":
        key = trajectory_RT[mask_RT]
    else:
        key = torch.stack([trajectory_RT[mask_RT], rows.turn_RT[mask_RT]], dim=1)
    names, label = key.unique(dim=0, return_inverse=True)
    unit_RT = torch.full_like(mask_RT, -1, dtype=torch.long)
    unit_RT[mask_RT] = label
    return unit_RT, len(names)


def unit_sum(x_RT: Tensor, unit_RT: Tensor, n: int) -> Tensor:
    """Sum of ``x`` over the unit of each token, given to the token; 0 off the mask, (R, T)."""
    on_RT = unit_RT >= 0
    total = x_RT.new_zeros(n).index_add_(0, unit_RT[on_RT], x_RT[on_RT])
    sum_RT = torch.zeros_like(x_RT)
    sum_RT[on_RT] = total[unit_RT[on_RT]]
    return sum_RT


def unit_mean(x_RT: Tensor, unit_RT: Tensor, n: int) -> Tensor:
    """Mean of ``x`` over the unit of each token, given to the token; 0 off the mask, (R, T)."""
    count_RT = unit_sum((unit_RT >= 0).to(x_RT.dtype), unit_RT, n)
    return unit_sum(x_RT, unit_RT, n) / count_RT.clamp(min=1)


def surrogate(ratio_RT: Tensor, advantage_RT: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    """PPO's clipped surrogate as a loss: max(−ρA, −clip(ρ, low, high)·A), (R, T)."""
    least, most = (
        torch.as_tensor(bound, dtype=ratio_RT.dtype, device=ratio_RT.device) for bound in (low, high)
    )
    clipped_RT = torch.clamp(ratio_RT, least, most)
    return torch.maximum(-ratio_RT * advantage_RT, -clipped_RT * advantage_RT)


def k3_of_old(log_ratio_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """The k3 estimate of KL(π_old ‖ π) over the sampled tokens: a metric."""
    return token_mean(log_ratio_RT.exp() - 1 - log_ratio_RT, mask_RT)


def whole_share(share: float, n: int) -> int:
    """⌊share·n⌋, not one fewer where the product is rounded to just below a whole number.

    >>> int(0.29 * 100), whole_share(0.29, 100), whole_share(0.299, 100)
    (28, 29, 29)
    """
    return math.floor(share * n + 1e-9)
