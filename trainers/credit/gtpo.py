"""GTPO: tokens that successes and failures share are not torn both ways."""

from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import cells, group_sum, group_z, over_cells
from turnwise.trainers.kit.token_credit import Sequences, sequences, token_signal, tokens_of


@component(
    "credit",
    "gtpo",
    paper="2508.03772",
    needs=("token_entropy",),
    bias="biased: GRPO's standardisation, and shared beginnings and ends count for successes only",
)
def gtpo(
    batch: TurnBatch, *, entropy: float = 0.1, shared: float = 2.0, cutoff: float | None = None
) -> TokenCredit:
    """GRPO's advantage minus a little mean entropy; tokens that both kinds of trajectory begin or end with are special.

    A conflict is a token that stands at the same place in a trajectory with A > 0 and one with A < 0 of the group,
    in an unbroken run from the beginning; and likewise, counted backwards, from the end. Each of the two
    multiplies by ``shared`` where A > 0, by 0 where A < 0. A' = (A − γ·H̄)·λ_forward·λ_backward, H̄ the trajectory's mean
    token entropy; trajectories with H̄ above ``cutoff`` get nothing. Simoni et al. 2025, and their code.

    Ours: places are counted within a turn, and groups without any spread get nothing. The paper's cutoff, ln 2,
    is for models that begin below it, so none is set. Left out: a loss divided by the number of conflicts.

    Worked by hand: a b c e succeeds, a b d e fails, H̄ = 0.5: λ = 2, 2, 1, 2 and 0, 0, 1, 0.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> tokens = [[[1, 2, 3, 5]], [[1, 2, 4, 5]], [[7]], [[8]]]
    >>> entropies = {"token_entropy": [[0.5] * 4, [0.5] * 4, [0.5], [0.5]]}
    >>> batch = turn_batch([[1], [0], [0], [1]], tokens=tokens, token_signals=entropies)
    >>> rounded(gtpo(batch).advantage_RT, 4)[:2]
    [[1.632, 1.632, 0.816, 1.632], [0.0, 0.0, -0.916, 0.0]]
    """
    entropy_RT = token_signal(batch, "token_entropy")
    at = sequences(batch)
    advantage_B = group_z(batch.return_B, batch.group_B)
    mean_B = at.pack(entropy_RT).sum(1) / at.mask_BM.sum(1).clamp(min=1)
    told_B = advantage_B.abs() > 1e-9
    if cutoff is not None:
        told_B = told_B & (mean_B <= cutoff)
    weight_B = torch.where(advantage_B > 0, shared, 0.0).to(entropy_RT.dtype)[:, None]
    factor_BM = torch.ones_like(at.mask_BM, dtype=entropy_RT.dtype)
    for torn_BM in _conflicts(batch, at, advantage_B):
        factor_BM = factor_BM * weight_B.where(torn_BM, 1.0)
    plain_B = (advantage_B - entropy * mean_B) * told_B
    return TokenCredit(at.unpack(plain_B[:, None] * factor_BM, entropy_RT))


class _Both(NamedTuple):
    """Conflicts in a run from the beginning and from the end of each turn, (B, M)."""

    forward_BM: Tensor
    backward_BM: Tensor


def _conflicts(batch: TurnBatch, at: Sequences, advantage_B: Tensor) -> _Both:
    """Which tokens stand in a run of conflicts, counted from either side of their turn."""
    token_BM = at.pack(tokens_of(batch).token_RT)
    begins_BM = torch.cat([torch.ones_like(at.last_BM[:, :1]), at.last_BM[:, :-1]], 1) & at.mask_BM
    forward_BM = _run(batch, at, token_BM, begins_BM, advantage_B)
    mirrored = at._replace(**{name: getattr(at, name).flip(1) for name in ("mask_BM", "turn_BM", "last_BM")})
    backward_BM = _run(batch, mirrored, token_BM.flip(1), mirrored.last_BM, advantage_B).flip(1)
    return _Both(forward_BM, backward_BM)


def _run(batch: TurnBatch, at: Sequences, token_BM: Tensor, begins_BM: Tensor, advantage_B: Tensor) -> Tensor:
    """Conflicts in an unbroken run from where turns begin."""
    mask_BM = at.mask_BM
    index_M = torch.arange(mask_BM.shape[1], device=mask_BM.device)
    begin_BM = torch.where(begins_BM, index_M, 0).cummax(1).values
    group_B, M = cells(batch.group_B), mask_BM.shape[1]
    turn_BM = group_B[:, None] * (batch.mask_BK.shape[1] + 1) + at.turn_BM
    place_BM = (turn_BM * M + index_M - begin_BM) * mask_BM
    cell_BM = (
        place_BM * (int(token_BM.max()) + 1 if token_BM.numel() else 1) + token_BM
    )  # one number sorts fast
    torn_BM = mask_BM
    for kind_B in (advantage_B > 1e-9, advantage_B < -1e-9):
        members_BM = over_cells(group_sum, kind_B[:, None].expand_as(mask_BM).long(), cell_BM, mask_BM)
        torn_BM = torn_BM & (members_BM > 0)
    broken_BM = (~torn_BM & mask_BM).long()
    so_far_BM = broken_BM.cumsum(1)
    before_BM = (so_far_BM - broken_BM).gather(1, begin_BM)
    return torn_BM & (so_far_BM == before_BM)
