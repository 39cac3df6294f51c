"""Numbers for what means nothing on a small process: made up, the same on every call, and not constant."""

from __future__ import annotations

import torch
from torch import Tensor

from turnwise.trainers.core import ExactProcess


def turns_of(p: ExactProcess) -> Tensor:
    """1 where there is a turn and 0 elsewhere, (N, K)."""
    return p.mask_NK.to(p.value_NK.dtype)


def wave(p: ExactProcess) -> Tensor:
    """cos(3·state + 2·action) of each turn, (N, K)."""
    return torch.cos(3.0 * p.state_NK + 2.0 * p.action_NK) * turns_of(p)
