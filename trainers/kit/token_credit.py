"""Arithmetic of token-level credit: tokens of a trajectory in one row, turn rewards on their last tokens.

Axes: B trajectory, M the sampled tokens of a trajectory in their order, over all its rows; R, T as in a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.trainers.core import TokenCredit, TokenView, TurnBatch


def tokens_of(batch: TurnBatch) -> TokenView:
    """The batch's tokens; an error where the batch has none.

    Raises:
        RecipeError: the episodes were not sampled token by token.
    """
    if batch.tokens is None:
        raise RecipeError(
            "The signal 'tokens' was not measured: this credit rule is about single tokens.",
            "Use it on episodes that a model played.",
        )
    return batch.tokens


def token_signal(batch: TurnBatch, name: str) -> Tensor:
    """A signal of single tokens, (R, T).

    Raises:
        RecipeError: the run did not measure it.
    """
    signals = tokens_of(batch).signals if batch.tokens is not None else {}
    if name not in signals:
        raise RecipeError(
            f"The signal {name!r} was not measured.",
            f"Add {name!r} to the recipe's signals; for `turnwise check`, give it a `stand_in` (docs/extending/signal.md).",
        )
    return signals[name]


class Sequences(NamedTuple):
    """Places of the sampled tokens of each trajectory.

    Attributes:
        row_N, position_N: each sampled token's place in (R, T), trajectory by trajectory.
        owner_N, rank_N: the same token's place in (B, M).
        mask_BM: True where there is a token.
        turn_BM: its turn, 0 elsewhere.
        last_BM: True at the last token of each turn.
    """

    row_N: Tensor
    position_N: Tensor
    owner_N: Tensor
    rank_N: Tensor
    mask_BM: Tensor
    turn_BM: Tensor
    last_BM: Tensor

    def pack(self, x_RT: Tensor) -> Tensor:
        """(R, T) → (B, M), 0 where there is no token."""
        x_BM = x_RT.new_zeros(self.mask_BM.shape)
        x_BM[self.owner_N, self.rank_N] = x_RT[self.row_N, self.position_N]
        return x_BM

    def unpack(self, x_BM: Tensor, like_RT: Tensor) -> Tensor:
        """(B, M) → (R, T) of the shape of ``like_RT``, 0 off the mask."""
        x_RT = x_BM.new_zeros(like_RT.shape)
        x_RT[self.row_N, self.position_N] = x_BM[self.owner_N, self.rank_N]
        return x_RT

    def at_ends(self, x_BK: Tensor) -> Tensor:
        """A number per turn, put on the turn's last token, (B, M)."""
        return self.of_turns(x_BK) * self.last_BM

    def of_turns(self, x_BK: Tensor) -> Tensor:
        """A number per turn, given to each of its tokens, (B, M)."""
        return x_BK.gather(1, self.turn_BM) * self.mask_BM


def sequences(batch: TurnBatch) -> Sequences:
    """The tokens of each trajectory in one row, by turn and then as they lie.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> found = sequences(turn_batch([[0, 1], [0]], tokens=[[[7, 8], [9]], [[7]]]))
    >>> found.turn_BM.tolist(), found.last_BM.tolist()
    ([[0, 0, 1], [0, 0, 0]], [[False, True, True], [True, False, False]])
    """
    view, B = tokens_of(batch), len(batch.group_B)
    row_N, position_N = view.mask_RT.nonzero(as_tuple=True)
    owner_N, turn_N = view.trajectory_R[row_N], view.turn_RT[row_N, position_N]
    order_N = (owner_N * (batch.mask_BK.shape[1] + 1) + turn_N).argsort(stable=True)
    row_N, position_N, owner_N, turn_N = (x[order_N] for x in (row_N, position_N, owner_N, turn_N))
    count_B = torch.bincount(owner_N, minlength=B)
    rank_N = torch.arange(len(owner_N), device=owner_N.device) - (count_B.cumsum(0) - count_B)[owner_N]
    M = int(count_B.max()) if len(count_B) else 0
    mask_BM = torch.zeros(B, M, dtype=torch.bool, device=owner_N.device)
    turn_BM = torch.zeros(B, M, dtype=torch.long, device=owner_N.device)
    mask_BM[owner_N, rank_N], turn_BM[owner_N, rank_N] = True, turn_N
    same_N = (owner_N[1:] == owner_N[:-1]) & (turn_N[1:] == turn_N[:-1])
    last_BM = torch.zeros_like(mask_BM)
    last_BM[owner_N, rank_N] = torch.cat([~same_N, same_N.new_ones(min(1, len(owner_N)))])
    return Sequences(row_N, position_N, owner_N, rank_N, mask_BM, turn_BM, last_BM)


def over_tokens(x_BK: Tensor, batch: TurnBatch) -> Tensor:
    """A number per turn, given to each of its sampled tokens, (R, T)."""
    view = tokens_of(batch)
    return x_BK[view.trajectory_R[:, None], view.turn_RT.clamp(min=0)] * view.mask_RT


def on_turns(credit: Tensor | TokenCredit, batch: TurnBatch) -> Tensor:
    """The credit per turn, (B, K): of a token-level rule the mean over each turn's tokens."""
    if isinstance(credit, Tensor):
        return credit
    view, (B, K) = tokens_of(batch), batch.mask_BK.shape
    turn_N = (view.trajectory_R[:, None] * K + view.turn_RT)[view.mask_RT]
    given_N = credit.advantage_RT[view.mask_RT]
    total = given_N.new_zeros(B * K).index_add_(0, turn_N, given_N)
    count = given_N.new_zeros(B * K).index_add_(0, turn_N, torch.ones_like(given_N))
    return (total / count.clamp(min=1)).view(B, K)


def on_tokens(credit: Tensor | TokenCredit, batch: TurnBatch) -> Tensor:
    """The credit per sampled token, (R, T): of a turn-level rule that of the token's turn."""
    return over_tokens(credit, batch) if isinstance(credit, Tensor) else credit.advantage_RT


def changed(
    credit: Tensor | TokenCredit, batch: TurnBatch, change: Callable[..., Tensor], *of_turns: Tensor
) -> Tensor | TokenCredit:
    """``change(A, x, …)`` of each turn; where the credit is of tokens, of each token with the x of its turn.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch = turn_batch([[0, 1]], tokens=[[[7, 8], [9]]])
    >>> double = torch.tensor([[2.0, 3.0]])
    >>> changed(torch.tensor([[1.0, -1.0]]), batch, torch.mul, double).tolist()
    [[2.0, -3.0]]
    >>> changed(TokenCredit(torch.tensor([[1.0, 2.0, -1.0]])), batch, torch.mul, double).advantage_RT.tolist()
    [[2.0, 4.0, -3.0]]
    """
    if isinstance(credit, Tensor):
        return change(credit, *of_turns)
    return TokenCredit(change(credit.advantage_RT, *(over_tokens(x_BK, batch) for x_BK in of_turns)))


def of_turns_alone(credit: Tensor | TokenCredit, shape: str, because: str) -> Tensor:
    """The credit of a rule that gives every token of a turn the same.

    Raises:
        RecipeError: tokens of a turn may differ.
    """
    if isinstance(credit, Tensor):
        return credit
    raise RecipeError(
        f"shape {shape!r} {because}, and the advantages before it differ within a turn.",
        f"Choose a credit rule of whole turns, and name {shape!r} before shapes that are about tokens.",
    )
