"""Minibatches of whole groups, and what losses see of them: micro-batches of rows, or the whole at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.trainers.core import (
    Reduce,
    RowMask,
    TeacherTop,
    TokenBatch,
    TokenCredit,
    TurnBatch,
    WholeBatch,
)
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.learn.objective import Objective
from turnwise.trainers.learn.passes import Scores


class Minibatch(NamedTuple):
    """Trajectories and rows of one optimizer step.

    Attributes:
        trajectory_M: all that were played of its groups.
        played_M: their rows.
        row_M: the rows that are trained on, those of trajectories with a weight above 0.
    """

    trajectory_M: Tensor
    played_M: Tensor
    row_M: Tensor


class Stream(NamedTuple):
    """A batch on its way to the optimizer: what was played, or what a source shows beside it.

    Attributes:
        batch: of whole groups.
        credit: the advantage of each turn, or of each sampled token.
        objective: the losses.
        weight_B: multiplies a trajectory's advantages; 1 if None.
        aims: what heads are fitted by: the credit rule's own advantages; ``credit`` if None.
        order: groups in the order in which minibatches take them; as they come if None.
        name: of the source, before the names of its metrics; empty for what was played.
    """

    batch: TrainingBatch
    credit: Tensor | TokenCredit
    objective: Objective
    weight_B: Tensor | None = None
    aims: Tensor | TokenCredit | None = None
    order: Sequence[int] | None = None
    name: str = ""


class Constants(NamedTuple):
    """Tensors that stay as they are over the steps on one batch.

    Attributes:
        old_RT: log-probabilities before the first step, which fills in its own rows.
        reference_RT: those of the frozen reference, where a loss needs it.
        advantage_RT: what credit says.
        kept_RT: the weights of turns, times the filter's.
        group_R: each row's group.
        weight_B: the filter's.
        aims: what heads are fitted by.
        signals: of tokens, those that losses need.
    """

    old_RT: Tensor
    reference_RT: Tensor | None
    advantage_RT: Tensor
    kept_RT: Tensor
    group_R: Tensor
    weight_B: Tensor
    aims: Tensor | TokenCredit
    signals: Mapping[str, Tensor] = {}


def minibatches(
    batch: TrainingBatch, weight_B: Tensor, order: Sequence[int] | None, count: int
) -> list[Minibatch]:
    """``count`` minibatches of groups in this order, less those without a sampled token to learn from."""
    rows, group_B = batch.rows, batch.turns.group_B
    groups = int(group_B.max()) + 1 if len(group_B) else 0
    order_G = torch.tensor(order if order is not None else range(groups))
    group_R, weight_R = group_B[rows.trajectory_R], weight_B[rows.trajectory_R]
    found: list[Minibatch] = []
    for chosen_G in order_G.tensor_split(count):
        played_M = torch.isin(group_R, chosen_G).nonzero()[:, 0]
        row_M = played_M[weight_R[played_M] > 0]
        if bool(rows.mask_RT[row_M].any()):
            found.append(Minibatch(torch.isin(group_B, chosen_G).nonzero()[:, 0], played_M, row_M))
    return found


def is_cut(rows: TokenRows, parts: Sequence[Tensor]) -> bool:
    """Say whether a trajectory has rows in several of these micro-batches."""
    seen = torch.cat([rows.trajectory_R[index_N].unique() for index_N in parts])
    return len(seen) > len(seen.unique())


def reducer_weights(rows: TokenRows, chunk: Minibatch, reduce: Reduce) -> Tensor:
    """The reducer's weights on a minibatch as it was played, (R, T) of the batch; 0 elsewhere."""
    weight_RT = torch.zeros(rows.mask_RT.shape)
    played_M = chunk.played_M
    weight_RT[played_M] = reduce(
        RowMask(rows.mask_RT[played_M], rows.turn_RT[played_M], rows.trajectory_R[played_M])
    ).to(weight_RT.dtype)
    return weight_RT


def tokens_of(
    rows: TokenRows,
    index_N: Tensor,
    scores: Scores,
    constants: Constants,
    device: torch.device,
    top: TeacherTop | None = None,
    mean_logp_RT: Tensor | None = None,
) -> TokenBatch:
    """Return what token losses and corrections see of some rows, whose log-probabilities and entropies are given."""
    part = rows.select(index_N)
    longest = part.mask_RT.shape[1]
    old_RT = constants.old_RT[index_N, :longest]

    def cut(x_RT: Tensor) -> Tensor:
        return x_RT[index_N, :longest].to(device)

    return TokenBatch(
        logp_RT=scores.logp_RT,
        old_logp_RT=old_RT.to(device),
        behaviour_logp_RT=torch.where(part.known_RT, part.behaviour_logp_RT, old_RT).to(device),
        entropy_RT=scores.entropy_RT,
        advantage_RT=cut(constants.advantage_RT),
        mask_RT=part.mask_RT.to(device),
        turn_RT=part.turn_RT.to(device),
        trajectory_R=part.trajectory_R.to(device),
        group_R=constants.group_R[index_N].to(device),
        reference_logp_RT=None if constants.reference_RT is None else cut(constants.reference_RT),
        signals={name: cut(x_RT) for name, x_RT in constants.signals.items()},
        top=top,
        mean_logp_RT=mean_logp_RT,
    )


def whole_of(
    batch: TrainingBatch,
    chunk: Minibatch,
    scores: Scores,
    constants: Constants,
    correction_RT: Tensor,
    weight_RT: Tensor,
    signals: frozenset[str],
) -> WholeBatch:
    """Return what losses of the whole see of a minibatch; tensors (R, T) are those of the batch."""
    part, turns, own_M = batch.rows.select(chunk.row_M), batch.turns, chunk.trajectory_M
    longest = part.mask_RT.shape[1]
    number_B = torch.zeros(len(turns.group_B), dtype=torch.long)
    number_B[own_M] = torch.arange(len(own_M))

    def cut(x_RT: Tensor) -> Tensor:
        return x_RT[chunk.row_M, :longest].double()

    reference_RT = constants.reference_RT
    return WholeBatch(
        logp_RT=cut(scores.logp_RT).requires_grad_(),
        entropy_RT=cut(scores.entropy_RT).requires_grad_(),
        old_logp_RT=cut(constants.old_RT),
        behaviour_logp_RT=torch.where(
            part.known_RT, part.behaviour_logp_RT, constants.old_RT[chunk.row_M, :longest]
        ).double(),
        advantage_RT=cut(constants.advantage_RT * constants.kept_RT * correction_RT),
        mask_RT=part.mask_RT,
        turn_RT=part.turn_RT,
        weight_RT=cut(weight_RT),
        trajectory_R=number_B[part.trajectory_R],
        group_B=turns.group_B[own_M].unique(return_inverse=True)[1],
        reward_BK=(turns.reward_BK * turns.mask_BK)[own_M].double(),
        return_B=turns.return_B[own_M].double(),
        success_B=batch.success_B[own_M],
        weight_B=constants.weight_B[own_M].double(),
        reference_logp_RT=None if reference_RT is None else cut(reference_RT),
        signals=_signals(turns, own_M, chunk.row_M, longest, signals),
        nucleus_RT=None if scores.nucleus_RT is None else cut(scores.nucleus_RT).requires_grad_(),
    )


def _signals(
    turns: TurnBatch, own_M: Tensor, row_M: Tensor, longest: int, names: frozenset[str]
) -> Mapping[str, Tensor]:
    token = turns.tokens.signals if turns.tokens else {}
    found = {name: turns.signals[name][own_M].double() for name in sorted(names & {*turns.signals})}
    return found | {name: token[name][row_M, :longest].double() for name in sorted(names & {*token})}
