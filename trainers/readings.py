"""What a learner's weights say of a batch without learning from it: values of tokens, progress, entropies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from turnwise.trainers.collate import Batch, Rows, micro_batches
from turnwise.trainers.model import ValueHead
from turnwise.trainers.passes import Targets, before_tokens, states, turn_ends

if TYPE_CHECKING:
    from turnwise.trainers.learner import Learner


@torch.no_grad()
def token_entropies(learner: Learner, rows: Rows) -> Tensor:
    """Entropy of the policy at each sampled token, in nats, (R, T), on the CPU. One forward pass."""
    entropy_RT = torch.zeros(rows.mask_RT.shape)
    for index_M in micro_batches(rows, learner.options.micro_tokens):
        part = rows.select(index_M)
        found_RT = learner.reader.scores(learner.model, part).entropy_RT
        entropy_RT[index_M, : part.mask_RT.shape[1]] = found_RT.cpu()
    return entropy_RT


@torch.no_grad()
def token_values(learner: Learner, rows: Rows) -> Tensor:
    """V of the text before each sampled token, (R, T), on the CPU."""
    assert learner.value_head is not None
    value_RT = torch.zeros(rows.mask_RT.shape)
    for index_M in micro_batches(rows, learner.options.micro_tokens):
        part = rows.select(index_M)
        with learner.reader.precision():
            hidden = learner.reader.hidden(learner.model, part)
        found_N = learner.value_head(before_tokens(part, hidden)).cpu()
        value_RT[index_M, : part.mask_RT.shape[1]] = torch.zeros(part.mask_RT.shape).masked_scatter(
            part.mask_RT, found_N
        )
    return value_RT


@torch.no_grad()
def progress(learner: Learner, batch: Batch) -> Tensor:
    """The progress head's estimate of each turn's part in the return, (B, K), on the CPU."""
    assert learner.progress_head is not None
    mask_BK, ends_BK = batch.turns.mask_BK, turn_ends(batch)
    progress_BK = torch.zeros(mask_BK.shape)
    for index_M in micro_batches(batch.rows, learner.options.micro_tokens):
        part = batch.rows.select(index_M)
        with learner.reader.precision():
            hidden = learner.reader.hidden(learner.model, part)
        where_BK, hidden_ND = states(part, index_M, mask_BK, hidden, ends_BK)
        progress_BK[where_BK] = learner.progress_head(hidden_ND).cpu()
    return progress_BK


@torch.no_grad()
def last_values(learner: Learner, texts: Sequence[Sequence[int]]) -> Tensor:
    """V of the state that each text leads to, read at its last token, (N,), on the CPU."""
    assert learner.value_head is not None
    rows = plain_rows(texts, [len(text) for text in texts])
    value_N = torch.zeros(len(texts))
    for index_M in micro_batches(rows, learner.options.micro_tokens):
        part = rows.select(index_M)
        with learner.reader.precision():
            hidden = learner.reader.hidden(learner.model, part)
        last_M = (part.length_R - 1).to(hidden.device)
        at_ND = hidden[torch.arange(len(index_M), device=hidden.device), last_M]
        value_N[index_M] = learner.value_head(at_ND).cpu()
    return value_N


class Heads(NamedTuple):
    """What is read off the policy's hidden states beside its tokens, where a credit rule asks for it."""

    value: ValueHead | None
    progress: ValueHead | None


def head_gaps(
    heads: Heads, part: Rows, index_N: Tensor, hidden_RTD: Tensor, batch: Batch, aims: Targets
) -> Iterator[tuple[str, Tensor, str]]:
    """By how much each head misses in a micro-batch, with gradient.

    A metric's name, the gaps, and what their squares are averaged over: turns, tokens or trajectories.
    """
    mask_BK, device = batch.turns.mask_BK, hidden_RTD.device
    if heads.value is not None and aims.value_RT is not None:
        wanted_N = aims.value_RT[index_N, : part.mask_RT.shape[1]][part.mask_RT].to(device)
        yield "value_error", heads.value(before_tokens(part, hidden_RTD)) - wanted_N, "tokens"
    elif heads.value is not None and aims.value_BK is not None:
        where_BK, hidden_ND = states(part, index_N, mask_BK, hidden_RTD)
        yield "value_error", heads.value(hidden_ND) - aims.value_BK[where_BK].to(device), "turns"
    if heads.progress is not None:
        where_BK, hidden_ND = states(part, index_N, mask_BK, hidden_RTD, turn_ends(batch))
        owner_N = where_BK.nonzero()[:, 0].to(device)
        sum_B = torch.zeros(len(mask_BK), device=device)
        sum_B = sum_B.index_add(0, owner_N, heads.progress(hidden_ND))
        seen_M = owner_N.unique()
        yield "progress_error", sum_B[seen_M] - aims.return_B.to(device)[seen_M], "trajectories"


def plain_rows(texts: Sequence[Sequence[int]], scored_from: Sequence[int]) -> Rows:
    """Rows of token ids that no episode holds; each is scored from a position on.

    >>> plain_rows([[5, 6, 7], [8]], [1, 1]).mask_RT.tolist()
    [[False, True, True], [False, False, False]]
    """
    longest = max((len(text) for text in texts), default=0)
    token_RT = torch.zeros(len(texts), longest, dtype=torch.long)
    mask_RT = torch.zeros(len(texts), longest, dtype=torch.bool)
    for r, (text, start) in enumerate(zip(texts, scored_from, strict=True)):
        token_RT[r, : len(text)] = torch.tensor(text, dtype=torch.long)
        mask_RT[r, start : len(text)] = True
    length_R = torch.tensor([len(text) for text in texts], dtype=torch.long)
    nowhere = torch.zeros(len(texts), 0, dtype=torch.long)
    turn_RT = torch.where(mask_RT, 0, -1)
    return Rows(
        token_RT, mask_RT, turn_RT, torch.zeros(mask_RT.shape), length_R, torch.arange(len(texts)), nowhere, nowhere
    )  # fmt: skip
