"""Turns that a turn can have changed, where an agent's conversations are a tree (:class:`turnwise.trainers.core.TurnTree`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from turnwise.trainers.core import TurnBatch


def influenced(batch: TurnBatch) -> Tensor:
    """True where turn j may have been told something that came of turn k, and where j is k, (B, K, K) over b, k, j.

    In a conversation every turn comes after those before it. A branch that a call began comes after the turn that called
    and what that comes after; the caller's later turns come after the branch, because they have its answer. Two branches
    that one turn called do not come after each other. Where it is not known who began a conversation, and where one goes on
    twice from the same place, the order of time decides: what is later comes after all that is earlier.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch = turn_batch([[0, 0, 0, 0]], parents=[[-1, -1, -1, 0]], callers=[[-1, 0, 0, -1]])  # two helpers of the first
    >>> influenced(batch)[0].int().tolist()
    [[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    """
    most = batch.mask_BK.shape[1]
    in_time_KK = torch.ones(most, most, dtype=torch.bool, device=batch.mask_BK.device).triu()
    after_BKK = in_time_KK & batch.mask_BK[:, :, None] & batch.mask_BK[:, None, :]
    if batch.tree is None:
        return after_BKK
    for b, length in enumerate(batch.length_B.tolist()):
        parents, callers = (x_BK[b, : int(length)].tolist() for x_BK in batch.tree)
        for k, j in unrelated(parents, callers):
            after_BKK[b, k, j] = False
    return after_BKK


def unrelated(parents: Sequence[int], callers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The pairs of a turn and a later one that was told nothing of it."""
    if not any(caller >= 0 for caller in callers):
        return
    paths = _paths(parents, callers)
    for j, path in enumerate(paths):
        for k in range(j):
            met = next(((paths[k][root], turn) for root, turn in path.items() if root in paths[k]), None)
            if met is None:
                continue  # nobody knows what one conversation has to do with the other
            from_k, to_j = met
            if not (from_k < to_j or from_k == to_j == k):
                yield k, j


def _paths(parents: Sequence[int], callers: Sequence[int]) -> list[dict[int, int]]:
    """Of each turn its conversation, its caller's, that one's caller's, …, with the turn by which each was left.

    A conversation is named by its first turn.
    """
    paths: list[dict[int, int]] = []
    continued: set[int] = set()
    for j, (parent, caller) in enumerate(zip(parents, callers, strict=True)):
        if parent >= 0 and parent not in continued:
            continued.add(parent)
            root, *_ = paths[parent]
            paths.append({**paths[parent], root: j})
        else:
            above = paths[caller] if parent < 0 <= caller else {}
            paths.append({j: j, **above})
    return paths
