"""Rows that begin alike, read as one tree of tokens: each prefix that they share is computed once, with its gradient.

Siblings of a group share their prompt and the turns before they part, a fresh row repeats the beginning of its trajectory, and
leaves of a rollout tree repeat their trunk. A token's hidden state depends on what stands before it alone, so equal prefixes
have equal states: a node of the tree is a distinct prefix. One forward pass reads all nodes, and the states go back to the rows
that have them, so that losses, corrections and heads see rows as ever. In the backward pass a node's gradient is the sum over
its rows.

Example:
    >>> rows = torch.tensor([[5, 6, 7], [5, 6, 8], [5, 9, 0]])
    >>> tree = tree_of(rows, torch.tensor([3, 3, 2]))
    >>> tree.token_N.tolist(), tree.position_N.tolist(), tree.parent_N.tolist()
    ([5, 6, 7, 8, 9], [0, 1, 2, 2, 1], [-1, 0, 1, 1, 0])
    >>> tree.node_RT.tolist()
    [[0, 1, 2], [0, 1, 3], [0, 4, 0]]
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

Row: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Run: TypeAlias = tuple[int, int]
"""Nodes from the first up to and without the second."""


class Segment(NamedTuple):
    """Nodes in a line, each a child of the one before it; ``path`` has the runs of nodes above them, from the root.

    Others may hang on any of them: there are never more segments than rows.
    """

    begin: int
    end: int
    path: tuple[Run, ...]


class TokenTree(NamedTuple):
    """The distinct prefixes of some rows, in depth-first order.

    Attributes:
        token_N: the last token of each prefix.
        position_N: its place in every row that has it.
        parent_N: the prefix without its last token; −1 at a root.
        node_RT: the node of each token of each row; 0 beyond its end.
        segments: all nodes, in order.
    """

    token_N: Tensor
    position_N: Tensor
    parent_N: Tensor
    node_RT: Tensor
    segments: tuple[Segment, ...]


def tree_of(token_RT: Tensor, length_R: Tensor) -> TokenTree:
    """Build the tree of rows, in time linear in their tokens. Equal rows in any order give the same nodes."""
    rows = _rows(token_RT, length_R)
    node_RT = np.zeros(tuple(token_RT.shape), np.int64)
    tokens, positions, parents = list[Row](), list[Row](), list[Row]()
    path, before, count = np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    for r in _depth_first(rows):
        row = rows[r]
        shared = _common(before, row)
        new_N = np.arange(count, count + len(row) - shared)
        if len(new_N):
            above = path[shared - 1] if shared else -1
            tokens.append(row[shared:])
            positions.append(np.arange(shared, len(row)))
            parents.append(np.concatenate([[above], new_N[:-1]]))
        path, before, count = np.concatenate([path[:shared], new_N]), row, count + len(new_N)
        node_RT[r, : len(row)] = path
    parent_N = np.concatenate(parents)
    return TokenTree(
        torch.from_numpy(np.concatenate(tokens)),
        torch.from_numpy(np.concatenate(positions)),
        torch.from_numpy(parent_N),
        torch.from_numpy(node_RT),
        _segments(parent_N),
    )


def ends_of(parent_N: Tensor) -> Tensor:
    """Return one beyond the last node below each, (N,): in depth-first order these stand behind it without a gap.

    >>> ends_of(torch.tensor([-1, 0, 1, 1, 0])).tolist()
    [5, 4, 3, 4, 5]
    """
    parents, ends = parent_N.tolist(), list(range(1, len(parent_N) + 1))
    for node in range(len(ends) - 1, -1, -1):
        if parents[node] >= 0:
            ends[parents[node]] = max(ends[parents[node]], ends[node])
    return torch.tensor(ends)


def count_nodes(token_RT: Tensor, length_R: Tensor) -> int:
    """Count the distinct prefixes of rows.

    >>> count_nodes(torch.tensor([[5, 6, 7], [5, 6, 8]]), torch.tensor([3, 3]))
    4
    """
    return sum(new for _, new in _new_nodes(_rows(token_RT, length_R)))


def tree_batches(token_RT: Tensor, length_R: Tensor, most: int, row_M: Tensor) -> Iterator[Tensor]:
    """Cut rows ``row_M``, in depth-first order, into micro-batches of at most ``most`` nodes each.

    What the rows of two micro-batches share is computed in both. A row that is too long by itself is alone.
    """
    rows = _rows(token_RT[row_M], length_R[row_M])
    batch, size = list[int](), 0
    for r, new in _new_nodes(rows):
        if batch and size + new > most:
            yield row_M[torch.tensor(batch)]
            batch, size, new = [], 0, len(rows[r])
        batch.append(r)
        size += new
    if batch:
        yield row_M[torch.tensor(batch)]


def divided(token_RT: Tensor, length_R: Tensor, count: int, row_M: Tensor) -> list[Tensor]:
    """Divide rows ``row_M`` among ``count`` learners: runs of the depth-first order with about as many new nodes each."""
    rows = _rows(token_RT[row_M], length_R[row_M])
    found = [list[int]() for _ in range(count)]
    fresh = [*_new_nodes(rows)]
    total, done = sum(new for _, new in fresh), 0
    for r, new in fresh:
        found[min(count - 1, done * count // max(1, total))].append(r)
        done += new
    return [row_M[torch.tensor(sorted(own), dtype=torch.long)] for own in found]


def _rows(token_RT: Tensor, length_R: Tensor) -> list[Row]:
    token = token_RT.cpu().numpy()
    return [token[r, :n] for r, n in enumerate(length_R.tolist())]


def _depth_first(rows: Sequence[Row]) -> list[int]:
    """Return the order in which a row stands behind its prefixes and beside those that it shares most with."""
    keys = [row.astype(">i8").tobytes() for row in rows]  # bytes of numbers ≥ 0 compare as the numbers do
    return sorted(range(len(rows)), key=lambda r: (keys[r], r))


def _new_nodes(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Each row, depth first, with how many nodes it adds to those before it."""
    before = np.zeros(0, np.int64)
    for r in _depth_first(rows):
        yield r, len(rows[r]) - _common(before, rows[r])
        before = rows[r]


def _common(one: Row, other: Row) -> int:
    """Count the tokens with which two rows begin alike."""
    n = min(len(one), len(other))
    unlike = np.flatnonzero(one[:n] != other[:n])
    return int(unlike[0]) if len(unlike) else n


def _segments(parent_N: Row) -> tuple[Segment, ...]:
    count = len(parent_N)
    inside = np.zeros(count, bool)
    inside[1:] = parent_N[1:] == np.arange(count - 1)
    begins = np.flatnonzero(~inside).tolist()
    found: list[Segment] = []
    for begin, end in zip(begins, [*begins[1:], count], strict=True):
        parent = int(parent_N[begin])
        if parent < 0:
            found.append(Segment(begin, end, ()))
            continue
        above = found[bisect.bisect_right(begins, parent) - 1]
        found.append(Segment(begin, end, joined(above.path, (above.begin, parent + 1))))
    return tuple(found)


def joined(runs: tuple[Run, ...], run: Run) -> tuple[Run, ...]:
    """Runs of nodes with one more behind them; two that meet become one.

    >>> joined(((0, 3),), (3, 5)), joined(((0, 3),), (4, 5))
    (((0, 5),), ((0, 3), (4, 5)))
    """
    if runs and runs[-1][1] == run[0]:
        return (*runs[:-1], (runs[-1][0], run[1]))
    return (*runs, run)
