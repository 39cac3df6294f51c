"""The policy's entropy where it acted: of each sampled token's distribution, and its mean over a turn."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, Reading, SignalContext


def _exact(p: ExactProcess) -> dict[str, Tensor]:
    logp_SA = p.logits_SA.detach().log_softmax(-1)
    entropy_S = -(logp_SA.exp() * logp_SA).sum(-1)
    return dict.fromkeys(("entropy", "token_entropy"), entropy_S[p.state_NK] * turns_of(p))


@component("signal", "entropy", gives=("entropy", "token_entropy"), reads=("forward pass",), exact=_exact)
def entropy(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
    """H(π(·|text so far)) at each sampled token, in nats; ``entropy`` is its mean over the tokens of a turn.

    >>> mean_of_turns(torch.tensor([[1.0, 3.0, 5.0]]), torch.tensor([[0, 0, 1]]), torch.tensor([0]), (1, 2)).tolist()
    [[2.0, 5.0]]
    """
    rows = batch.rows
    entropy_RT = torch.zeros(rows.mask_RT.shape)

    def read(seen: PassPart) -> None:
        entropy_RT[seen.index_N, : seen.rows.mask_RT.shape[1]] = seen.scores.entropy_RT.cpu()

    def done() -> Measured:
        (B, K) = batch.turns.mask_BK.shape
        entropy_BK = mean_of_turns(entropy_RT, rows.turn_RT, rows.trajectory_R, (B, K))
        return Measured({"entropy": entropy_BK}, {"token_entropy": entropy_RT})

    return Reading(read, done)


def mean_of_turns(x_RT: Tensor, turn_RT: Tensor, trajectory_R: Tensor, shape: tuple[int, int]) -> Tensor:
    """The mean over the sampled tokens of each turn, 0 where it has none, (B, K)."""
    count_BK = sum_of_turns(torch.ones_like(x_RT), turn_RT, trajectory_R, shape)
    return sum_of_turns(x_RT, turn_RT, trajectory_R, shape) / count_BK.clamp(min=1)


def sum_of_turns(x_RT: Tensor, turn_RT: Tensor, trajectory_R: Tensor, shape: tuple[int, int]) -> Tensor:
    """The sum over the sampled tokens of each turn, 0 where it has none, (B, K)."""
    B, K = shape
    inside_RT = turn_RT >= 0
    turn_N = (trajectory_R[:, None] * K + turn_RT)[inside_RT]
    return x_RT.new_zeros(B * K).index_add_(0, turn_N, x_RT[inside_RT]).view(B, K)
