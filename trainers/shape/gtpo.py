"""GTPO: tokens that successes and failures share are not torn both ways."""

from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import cells, group_sum, over_cells
from turnwise.trainers.kit.token_credit import Sequences, on_tokens, sequences, token_signal, tokens_of


@component(
    "shape",
    "gtpo",
    paper="2508.03772",
    needs=("token_entropy",),
    bias="biased: shared beginnings and ends count for successes only",
)
def gtpo(
    credit: Tensor | TokenCredit,
    batch: TurnBatch,
    *,
    entropy: float = 0.1,
    shared: float = 2.0,
    cutoff: float | None = None,
) -> TokenCredit:
    """A minus a little mean entropy; tokens that both kinds of trajectory begin or end with are special.

    A conflict is a token that stands at the same place where A > 0 in one trajectory of the group and A < 0 in another,
    in an unbroken run from the beginning; and likewise, counted backwards, from the end. Each of the two
    multiplies by ``shared`` where A > 0, by 0 where A < 0. A' = (A − γ·H̄)·λ_forward·λ_backward, H̄ the trajectory's mean
    token entropy; trajectories with H̄ above ``cutoff`` get nothing. Simoni et al. 2025 over
    GRPO, and their code.

    Ours: places are counted within a turn, and what is given nothing stays so. The paper's cutoff, ln 2,
    is for models that begin below it, so none is set. Left out: a loss divided by the number of conflicts.

    Worked by hand: a b c e succeeds, a b d e fails, H̄ = 0.5: λ = 2, 2, 1, 2 and 0, 0, 1, 0.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> tokens = [[[1, 2, 3, 5]], [[1, 2, 4, 5]], [[7]], [[8]]]
    >>> entropies = {"token_entropy": [[0.5] * 4, [0.5] * 4, [0.5], [0.5]]}
    >>> batch = turn_batch([[1], [0], [0], [1]], tokens=tokens, token_signals=entropies)
    >>> rounded(gtpo(grpo(batch), batch).advantage_RT, 4)[:2]
    [[1.632, 1.632, 0.816, 1.632], [0.0, 0.0, -0.916, 0.0]]
    """
    entropy_RT = token_signal(batch, "token_entropy")
    at = sequences(batch)
    advantage_BM = at.pack(on_tokens(credit, batch))
    mean_B = at.pack(entropy_RT).sum(1) / at.mask_BM.sum(1).clamp(min=1)
    told_BM = advantage_BM.abs() > 1e-9
    if cutoff is not None:
        told_BM = told_BM & (mean_B <= cutoff)[:, None]
    weight_BM = torch.where(advantage_BM > 0, shared, 0.0).to(entropy_RT.dtype)
    factor_BM = torch.ones_like(at.mask_BM, dtype=entropy_RT.dtype)
    for torn_BM in _conflicts(batch, at, advantage_BM):
        factor_BM = factor_BM * weight_BM.where(torn_BM, 1.0)
    plain_BM = (advantage_BM - entropy * mean_B[:, None]) * told_BM
    return TokenCredit(at.unpack(plain_BM * factor_BM, entropy_RT))


class _Both(NamedTuple):
    """Conflicts in a run from the beginning and from the end of each turn, (B, M)."""

    forward_BM: Tensor
    backward_BM: Tensor


def _conflicts(batch: TurnBatch, at: Sequences, advantage_BM: Tensor) -> _Both:
    """Find the tokens that stand in a run of conflicts, counted from either side of their turn."""
    token_BM = at.pack(tokens_of(batch).token_RT)
    begins_BM = torch.cat([torch.ones_like(at.last_BM[:, :1]), at.last_BM[:, :-1]], 1) & at.mask_BM
    forward_BM = _run(batch, at, token_BM, begins_BM, advantage_BM)
    mirrored = at._replace(**{name: getattr(at, name).flip(1) for name in ("mask_BM", "turn_BM", "last_BM")})
    backward_BM = _run(batch, mirrored, token_BM.flip(1), mirrored.last_BM, advantage_BM.flip(1)).flip(1)
    return _Both(forward_BM, backward_BM)


def _run(
    batch: TurnBatch, at: Sequences, token_BM: Tensor, begins_BM: Tensor, advantage_BM: Tensor
) -> Tensor:
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
    for kind_BM in (advantage_BM > 1e-9, advantage_BM < -1e-9):
        members_BM = over_cells(group_sum, kind_BM.long(), cell_BM, mask_BM)
        torn_BM = torn_BM & (members_BM > 0)
    broken_BM = (~torn_BM & mask_BM).long()
    so_far_BM = broken_BM.cumsum(1)
    before_BM = (so_far_BM - broken_BM).gather(1, begin_BM)
    return torn_BM & (so_far_BM == before_BM)
