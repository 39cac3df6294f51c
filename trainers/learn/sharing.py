"""Rows that begin alike, read once where they do: what is read grows with what is said, not with the square of the turns.

A teacher that is told something before each reply reads a row for every turn, and each of them begins with the conversation
so far. That conversation is read once, as the trunk; every row goes on from where it leaves the trunk, with the keys and
values of what it has in common with it. A position sees the same tokens at the same places as in a row of its own, so that
only rounding differs.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.trainers.learn.collate import TokenRows, micro_batches
from turnwise.trainers.learn.model import base_of
from turnwise.trainers.learn.passes import Reader


class RowsRead(NamedTuple):
    """A forward pass over some rows: where they are in the whole, the rows, and their hidden states.

    States that no masked token is drawn from may be 0.
    """

    index_N: Tensor
    part: TokenRows
    hidden_RTD: Tensor


class Trunk(NamedTuple):
    """Tokens that rows begin with: which rows, and how many of the tokens each of them has."""

    token_T: Tensor
    row_N: Tensor
    shared_N: Tensor


@torch.no_grad()
def read_sharing(
    reader: Reader, model: nn.Module, rows: TokenRows, played: TokenRows, most: int
) -> Iterator[RowsRead]:
    """Read all rows, each trajectory's common beginning once where the model can go on from it and that saves tokens.

    Args:
        reader: runs the model.
        model: a causal model; one whose attention has a window, or that keeps another state than keys and values, reads every
            row as a whole.
        rows: to be read.
        played: rows of the same trajectories, whose tokens may be the common beginning.
        most: tokens of one pass.
    """
    trunks = trunks_of(rows, played) if can_go_on(model) else []
    alone_R = torch.ones(len(rows.length_R), dtype=torch.bool)
    for trunk in trunks:
        alone_R[trunk.row_N] = False
    for index_N in micro_batches(rows, most, alone_R.nonzero()[:, 0]):
        part = rows.select(index_N)
        with reader.precision():
            yield RowsRead(index_N, part, reader.hidden(model, part))
    for trunk in trunks:
        yield from _read_from(reader, model, rows, trunk, most)


def can_go_on(model: nn.Module) -> bool:
    """Whether the model can read on from any place of what it has read: all that it keeps are keys and values of full attention."""
    base = base_of(model)
    config = base.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    windowed = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    takes = inspect.signature(base.get_decoder().forward).parameters
    stateful = bool(getattr(base, "_is_stateful", False))
    return kinds == {"full_attention"} and not windowed and not stateful and "position_ids" in takes


def trunks_of(rows: TokenRows, played: TokenRows) -> list[Trunk]:
    """Of every trajectory of which a common beginning saves tokens: the row that saves most, as its trunk.

    Candidates are the rows that were played and the longest of those to be read.
    """
    of_trajectory: dict[int, list[int]] = defaultdict(list)
    for r, b in enumerate(rows.trajectory_R.tolist()):
        of_trajectory[b].append(r)
    found: list[Trunk] = []
    for b, own in of_trajectory.items():
        if len(own) < 2:
            continue
        row_N = torch.tensor(own)
        longest = own[int(rows.length_R[row_N].argmax())]
        candidates = [played.token_RT[r, : played.length_R[r]] for r in (played.trajectory_R == b).nonzero()[:, 0].tolist()]  # fmt: skip
        candidates.append(rows.token_RT[longest, : rows.length_R[longest]])
        trunks = [Trunk(token_T, row_N, _shared(rows, row_N, token_T)) for token_T in candidates]
        saved = [int(one.shared_N.sum()) - len(one.token_T) for one in trunks]
        if max(saved) > 0:
            found.append(trunks[saved.index(max(saved))])
    return found


def _shared(rows: TokenRows, row_N: Tensor, token_T: Tensor) -> Tensor:
    """How many tokens each row has in common with a beginning; (N,)."""
    width = min(rows.token_RT.shape[1], len(token_T))
    inside_NT = torch.arange(width) < rows.length_R[row_N][:, None]
    same_NT = (rows.token_RT[row_N, :width] == token_T[:width]) & inside_NT
    return same_NT.long().cumprod(1).sum(1)


def _read_from(
    reader: Reader, model: nn.Module, rows: TokenRows, trunk: Trunk, most: int
) -> Iterator[RowsRead]:
    """The rows of a trunk, in passes of at most ``most`` tokens seen, those of the trunk among them."""
    base, training = base_of(model), model.training
    model.eval()  # in training mode a model that recomputes its layers keeps no keys and values
    try:
        token_T = trunk.token_T[: int(trunk.shared_N.max())].to(reader.device)
        with reader.precision():
            read = base.get_decoder()(input_ids=token_T[None], use_cache=True)
        reader.tokens_read += len(token_T)
        rest_N = rows.length_R[trunk.row_N] - trunk.shared_N
        order_N = rest_N.argsort(descending=True, stable=True)
        begin = 0
        while begin < len(order_N):
            seen = len(token_T) + int(rest_N[order_N[begin]])
            chosen_M = order_N[begin : begin + max(1, most // seen)]
            begin += len(chosen_M)
            index_M, shared_M = trunk.row_N[chosen_M], trunk.shared_N[chosen_M]
            part = rows.select(index_M)
            hidden_RTD = _go_on(reader, base.get_decoder(), read, part, shared_M)
            yield RowsRead(index_M, part, hidden_RTD)
    finally:
        model.train(training)


def _go_on(reader: Reader, decoder: Any, read: Any, part: TokenRows, shared_M: Tensor) -> Tensor:
    """Hidden states (M, T, D) of rows whose first ``shared_M`` tokens were read already."""
    trunk_TD = read.last_hidden_state[0]
    M, T = part.token_RT.shape
    position_T = torch.arange(T)
    known_MT = position_T < shared_M[:, None]
    hidden_MTD = trunk_TD.new_zeros(M, T, trunk_TD.shape[-1])
    common = min(T, len(trunk_TD))
    hidden_MTD[:, :common] = trunk_TD[:common] * known_MT[:, :common, None].to(trunk_TD.device)
    rest = int((part.length_R - shared_M).max())
    if rest <= 0:
        return hidden_MTD
    at_MS = (shared_M[:, None] + torch.arange(rest)).clamp(max=T - 1)
    inside_MS = shared_M[:, None] + torch.arange(rest) < part.length_R[:, None]
    seen_MT = torch.arange(len(trunk_TD)) < shared_M[:, None]
    with reader.precision():
        new_MSD = decoder(
            input_ids=part.token_RT.gather(1, at_MS).to(reader.device),
            attention_mask=torch.cat([seen_MT, torch.ones_like(inside_MS)], 1).long().to(reader.device),
            position_ids=at_MS.to(reader.device),
            past_key_values=_spread(read.past_key_values, M),
            use_cache=True,
        ).last_hidden_state
    row_N, place_N = inside_MS.nonzero(as_tuple=True)
    hidden_MTD[row_N, at_MS[row_N, place_N]] = new_MSD[row_N, place_N]
    reader.tokens_read += int(inside_MS.sum())
    return hidden_MTD


def _spread(cache: Any, count: int) -> Any:
    """The keys and values of one row, for ``count`` rows; the given ones stay as they are."""
    from transformers import DynamicCache

    spread = DynamicCache()
    for number, layer in enumerate(cache.layers):
        keys, values = (x.expand(count, *x.shape[1:]) for x in (layer.keys, layer.values))
        spread.update(keys, values, number)
    return spread
