"""Implicit rewards: a copy of the policy that learns to tell success from failure, token by token.

What the copy φ finds likelier than the policy it is compared with is what successes have and failures lack. Two
ways to train it: ``outcomes`` (PRIME, Cui et al. 2025, eq. 3) and ``pairs`` (iStar, Liu et al. 2025, eq. 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.learn.optimizer import descend, moments_of, restore_moments
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.shards import whole
from turnwise.trainers.learn.weights import weights_of

ImplicitKind: TypeAlias = Literal["outcomes", "pairs"]
BETA = 0.05  # of both papers
LONGEST_GRADIENT = 10.0


class ImplicitReward:
    """A trainable copy of the policy, its optimizer, and the reward that it implies.

    Args:
        model: the copy φ; is trained.
        reader: of the learner, so that both read log-probabilities in the same way.
        kind: ``outcomes``: σ(β·Σ log φ/π) is the chance of success, fitted by cross-entropy. ``pairs``: a success of a
            group has a higher mean turn reward than a failure of it.
        learning_rate: of AdamW.
        micro_tokens: of one forward pass.
    """

    def __init__(
        self, model: nn.Module, reader: Reader, kind: ImplicitKind, *, learning_rate: float, micro_tokens: int
    ) -> None:
        self.model, self.reader, self.micro_tokens = model, reader, micro_tokens
        self.kind: ImplicitKind = kind
        self.weights = weights_of(model)
        self.optimizer = torch.optim.AdamW(self.weights.trainable(), lr=learning_rate, weight_decay=0.0)

    def rewards(self, rows: TokenRows, reference_RT: Tensor) -> Tensor:
        """β·(log φ − log π) of each sampled token, (R, T), on the CPU."""
        logp_RT = self.reader.score(self.model, rows, self.micro_tokens)
        return BETA * (logp_RT - reference_RT) * rows.mask_RT

    def learn(
        self,
        batch: TrainingBatch,
        reference_RT: Tensor,
        success_B: Tensor,
        better_BB: Tensor | None = None,
    ) -> float:
        """One step on a batch; returns the loss: of ``better_BB`` where it says which trajectories are better than which, else of success.

        The loss depends on each trajectory through one number Q. Its slope in Q is found first, so that the
        trajectories can pass through the model in any number of micro-batches.
        """
        rows, share_B = batch.rows, self._share(batch)
        token_RT = self.rewards(rows, reference_RT)
        total_B = token_RT.new_zeros(len(share_B)).index_add_(0, rows.trajectory_R, token_RT.sum(1))
        q_B = (total_B * share_B).requires_grad_()
        if better_BB is None:
            loss = implicit_loss(q_B, success_B, batch.turns.group_B, self.kind)
        else:
            loss = pair_loss(q_B, better_BB)
        (slope_B,) = torch.autograd.grad(loss, q_B)
        weight_B = BETA * slope_B * share_B
        for index_M in self.reader.cut(self.model, rows, self.micro_tokens):
            part = rows.select(index_M)
            logp_RT = self.reader.scores(self.model, part).logp_RT
            (logp_RT * weight_B[part.trajectory_R].to(logp_RT.device)[:, None]).sum().backward()
        descend(self.optimizer, [self.weights], LONGEST_GRADIENT)
        return loss.item()

    def _share(self, batch: TrainingBatch) -> Tensor:
        """Return the factor of Σ over a trajectory's tokens: Q is their sum, or the mean over turns."""
        length_B = batch.turns.length_B.clamp(min=1)
        return 1 / length_B if self.kind == "pairs" else torch.ones(len(length_B))

    def tensors(self) -> dict[str, Tensor]:
        """Weights and moments, for a checkpoint."""
        weights = {f"weight/{name}": tensor for name, tensor in self.weights.state().items()}
        moments = moments_of(self.optimizer, [self.weights])
        return weights | {f"moment/{name}": whole(tensor) for name, tensor in moments.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Put a checkpoint's tensors back."""
        self.weights.restore(_below("weight/", tensors))
        moments = {name: tensor.clone() for name, tensor in _below("moment/", tensors).items()}
        restore_moments(self.optimizer, [self.weights], moments)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def implicit_loss(q_B: Tensor, success_B: Tensor, group_B: Tensor, kind: ImplicitKind) -> Tensor:
    """The loss that the reward model φ minimises, a function of each trajectory's Q.

    ``outcomes``: mean of −log σ(Q) for successes, −log(1 − σ(Q)) for failures. ``pairs``: mean over all pairs of a success
    and a failure of one group of −log σ(Q_s − Q_f), 0 where there is none.

    >>> q_B, group_B = torch.tensor([0.0125, -0.0], dtype=torch.float64), torch.tensor([0, 0])
    >>> round(implicit_loss(q_B, torch.tensor([True, False]), group_B, "pairs").item(), 4)
    0.6869
    >>> q_B = torch.tensor([0.025, -0.03], dtype=torch.float64)
    >>> round(implicit_loss(q_B, torch.tensor([True, False]), group_B, "outcomes").item(), 4)
    0.6795
    """
    if kind == "outcomes":
        return F.binary_cross_entropy_with_logits(q_B, success_B.to(q_B.dtype))
    return pair_loss(q_B, success_B[:, None] & ~success_B[None, :] & (group_B[:, None] == group_B[None, :]))


def pair_loss(q_B: Tensor, better_BB: Tensor) -> Tensor:
    """The mean of −log σ(Q_i − Q_j) over the pairs in which i is better than j, 0 where there is none.

    >>> better_BB = torch.tensor([[False, True], [False, False]])
    >>> round(pair_loss(torch.tensor([0.7, 0.2]), better_BB).item(), 4)
    0.4741
    """
    gap_BB = q_B[:, None] - q_B[None, :]
    return (F.softplus(-gap_BB) * better_BB).sum() / better_BB.sum().clamp(min=1)
