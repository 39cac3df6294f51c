"""Arithmetic that credit rules share: statistics per group, returns per turn.

Groups are given by number (``group_B``); every statistic comes back once per trajectory, so that rules
read as their formulas do: ``return_B - group_mean(return_B, group_B)``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.trainers.core import TurnBatch

EPS = 1e-6  # added to a standard deviation before dividing by it


def group_sum(x_B: Tensor, group_B: Tensor) -> Tensor:
    """Sum of ``x`` over the group of each trajectory, (B, …).

    >>> group_sum(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 1, 0])).tolist()
    [5.0, 2.0, 5.0]
    """
    _, label_B = group_B.unique(return_inverse=True)
    total = x_B.new_zeros((int(label_B.max()) + 1 if len(label_B) else 0, *x_B.shape[1:]))
    return total.index_add_(0, label_B, x_B)[label_B]


def group_size(group_B: Tensor) -> Tensor:
    """Count the trajectories in the group of each trajectory, itself among them, (B,)."""
    return group_sum(torch.ones_like(group_B), group_B)


def group_mean(x_B: Tensor, group_B: Tensor) -> Tensor:
    """Mean of ``x`` over the group of each trajectory, (B, …)."""
    size_B = group_size(group_B)
    return group_sum(x_B, group_B) / size_B.view(-1, *[1] * (x_B.dim() - 1))


def group_std(x_B: Tensor, group_B: Tensor) -> Tensor:
    """Sample standard deviation (n − 1) of ``x`` over each group, 0 for a group of one, (B,)."""
    deviation_B = x_B - group_mean(x_B, group_B)
    return (group_sum(deviation_B**2, group_B) / (group_size(group_B) - 1).clamp(min=1)).sqrt()


def group_z(x_B: Tensor, group_B: Tensor, *, eps: float = EPS) -> Tensor:
    """(x − mean) / (std + eps) over each group; 0 where all are equal or there is only one, (B,)."""
    return (x_B - group_mean(x_B, group_B)) / (group_std(x_B, group_B) + eps)


def peers_mean(x_B: Tensor, group_B: Tensor) -> Tensor:
    """Mean of ``x`` over the *other* trajectories of the group, 0 where there are none, (B, …).

    It doesn't depend on the trajectory itself, which is what makes a baseline unbiased.

    >>> peers_mean(torch.tensor([1.0, 0.0, 5.0, 7.0]), torch.tensor([0, 0, 0, 1])).tolist()
    [2.5, 3.0, 0.5, 0.0]
    """
    peers_B = (group_size(group_B) - 1).clamp(min=1)
    return (group_sum(x_B, group_B) - x_B) / peers_B.view(-1, *[1] * (x_B.dim() - 1))


def alone(group_B: Tensor) -> Tensor:
    """True for a trajectory without peers, (B,)."""
    return group_size(group_B) == 1


def over_turns(x_B: Tensor, batch: TurnBatch) -> Tensor:
    """One number per trajectory, given to each of its turns, (B, K)."""
    return x_B[:, None] * batch.mask_BK


def returns_to_go(batch: TurnBatch, discount: float = 1.0) -> Tensor:
    """G_k = r_k + γ·G_{k+1}, 0 where there is no turn, (B, K); γ is 1 after a turn of kind ``memory``, which takes no time.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(returns_to_go(turn_batch([[0, 0.2, 0, 1]]), 0.95))
    [[1.047375, 1.1025, 0.95, 1.0]]
    >>> rounded(returns_to_go(turn_batch([[0, 0.2, 0, 1]], memory=[[0, 0, 1, 0]]), 0.95))
    [[1.0925, 1.15, 1.0, 1.0]]
    """
    return reverse_cumsum(batch.reward_BK * batch.mask_BK, batch.discount_BK(discount)) * batch.mask_BK


def reverse_cumsum(x_BK: Tensor, discount: float | Tensor = 1.0) -> Tensor:
    """y_k = x_k + d·y_{k+1} along the last axis, where d is a number or (B, K)."""
    y_BK = torch.empty_like(x_BK)
    running_B = x_BK.new_zeros(x_BK.shape[0])
    for k in reversed(range(x_BK.shape[1])):
        d = discount[:, k] if isinstance(discount, Tensor) else discount
        running_B = x_BK[:, k] + d * running_B
        y_BK[:, k] = running_B
    return y_BK


def whiten(x: Tensor, mask: Tensor, *, eps: float = 1e-8) -> Tensor:
    """(x − mean) / sqrt(var + eps) over the positions of ``mask``, sample variance, 0 elsewhere.

    Fewer than two positions give 0: there is nothing to compare.
    """
    n = mask.sum()
    deviation = (x - (x * mask).sum() / n.clamp(min=1)) * mask
    return deviation / ((deviation**2).sum() / (n - 1).clamp(min=1) + eps).sqrt()


def signal(batch: TurnBatch, name: str) -> Tensor:
    """A signal of the batch.

    Raises:
        RecipeError: the run did not measure it.
    """
    if name not in batch.signals:
        raise RecipeError(
            f"The signal {name!r} was not measured.",
            f"Add {name!r} to the recipe's signals; for `turnwise check`, give it a `stand_in` (docs/extending/signal.md).",
        )
    return batch.signals[name]


# --- cells: turns that are compared with each other ------------------------------------------------


def cells(*keys: Tensor) -> Tensor:
    """One number for each distinct combination of the keys, which broadcast against each other.

    >>> cells(torch.tensor([[7], [9]]), torch.tensor([[1, 2], [1, 1]])).tolist()
    [[0, 1], [2, 2]]
    """
    stacked = torch.stack(torch.broadcast_tensors(*keys), dim=-1)
    _, label = stacked.flatten(0, -2).unique(dim=0, return_inverse=True)
    return label.view(stacked.shape[:-1])


def over_cells(
    statistic: Callable[[Tensor, Tensor], Tensor], x_BK: Tensor, cell_BK: Tensor, mask_BK: Tensor
) -> Tensor:
    """A statistic of groups (``group_mean``, ``group_z``, …) taken over cells of turns instead, (B, K)."""
    y_BK = torch.zeros_like(x_BK)
    y_BK[mask_BK] = statistic(x_BK[mask_BK], cell_BK[mask_BK])
    return y_BK


def cell_size(cell_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """Count the turns that share the cell of each turn, 0 where there is no turn, (B, K)."""
    return over_cells(lambda one, cell: group_sum(one, cell), mask_BK.long(), cell_BK, mask_BK)


def turn_cells(batch: TurnBatch) -> Tensor:
    """Turns are in one cell when they are the same turn of the same group, (B, K)."""
    turn_K = torch.arange(batch.mask_BK.shape[1], device=batch.mask_BK.device)
    return cells(batch.group_B[:, None], turn_K)


def prefix_cells(batch: TurnBatch) -> Tensor:
    """Turns are in one cell when all states up to theirs agree: the nodes of the group's prefix tree, (B, K).

    The same state reached on two ways is two nodes, and so is the same way in two groups.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> states = [[0, 1, 5], [0, 1, 6], [0, 2, 5], [0, 1, 5]]
    >>> prefix_cells(turn_batch([[0, 0, 0]] * 4, [0, 0, 0, 1], states=states)).tolist()
    [[0, 1, 2], [0, 1, 5], [0, 4, 7], [3, 6, 8]]
    """
    node_BK = torch.zeros_like(batch.state_BK)
    node_B = batch.group_B
    for k in range(batch.state_BK.shape[1]):
        node_B = cells(node_B, batch.state_BK[:, k])
        node_BK[:, k] = node_B
    return cells(node_BK, torch.arange(node_BK.shape[1], device=node_BK.device))


def following(x_BK: Tensor, end_B: Tensor, mask_BK: Tensor) -> Tensor:
    """``x`` at the next turn, ``end`` at the last one, (B, K).

    >>> mask = torch.tensor([[True, True], [True, False]])
    >>> following(torch.tensor([[1, 2], [3, 0]]), torch.tensor([8, 9]), mask).tolist()
    [[2, 8], [9, 0]]
    """
    pad_B1 = torch.zeros_like(x_BK[:, :1])
    next_BK = torch.cat([x_BK[:, 1:], pad_B1], dim=1)
    return torch.where(last_turn(mask_BK), end_B[:, None], next_BK) * mask_BK


def last_turn(mask_BK: Tensor) -> Tensor:
    """True at the last turn of each trajectory, (B, K)."""
    ended_B1 = torch.zeros_like(mask_BK[:, :1])
    return mask_BK & ~torch.cat([mask_BK[:, 1:], ended_B1], dim=1)
