"""Learners that take every step together: each reads its share of the rows, and gradients are added up before the step.

The denominators of a loss are of the whole minibatch before it is shared out, so the sum of the shares' gradients is the
gradient. How rows are shared depends on their number and lengths alone. :class:`Alone` computes all shares in this process,
one after the other, and adds them up in their order: for two learners that is the same sum, bit for bit, that two
processes make of them (:class:`turnwise.trainers.learn.ranks.Rank`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from turnwise.errors import RunError
from turnwise.trainers.learn.collate import TokenRows
from turnwise.trainers.learn.passes import Means
from turnwise.trainers.learn.tree import divided
from turnwise.trainers.learn.weights import Weights


class Team(Protocol):
    """Processes that learn together.

    Attributes:
        size: how many learners there are, and shares of the rows.
        mine: the shares that this process computes.
    """

    @property
    def size(self) -> int: ...

    @property
    def mine(self) -> Sequence[int]: ...

    def sum_(self, x: Tensor) -> None:
        """Add up, in place, what the processes have found of a tensor on the CPU; each has zeros where others have more."""
        ...

    def gather(self, said: Sequence[str]) -> list[str]:
        """Gather what is said of each share, in the order of shares; ``said`` has this process's."""
        ...

    def share(self, number: int, weights: Sequence[Weights]) -> contextlib.AbstractContextManager[None]:
        """Take gradients that are computed inside for those of this share."""
        ...

    def add_up(self, weights: Sequence[Weights]) -> None:
        """Give every parameter of which each learner has a copy the sum of the shares' gradients."""
        ...


class Alone:
    """All shares are computed here, one after the other.

    Args:
        size: how many; with 1, gradients are left where they are.
    """

    def __init__(self, size: int = 1) -> None:
        self.size, self.mine = size, range(size)
        self._kept: list[dict[nn.Parameter, Tensor]] = [{} for _ in range(size)]

    def sum_(self, x: Tensor) -> None:
        """It is whole already."""

    def gather(self, said: Sequence[str]) -> list[str]:
        """All of them are this process's."""
        return list(said)

    @contextlib.contextmanager
    def share(self, number: int, weights: Sequence[Weights]) -> Iterator[None]:
        """Keep the gradients of a share apart from those of the others."""
        if self.size == 1:
            yield
            return
        kept, parameters = self._kept[number], copied(weights)
        for parameter in parameters:
            parameter.grad = kept.pop(parameter, None)
        yield
        for parameter in parameters:
            if parameter.grad is not None:
                kept[parameter], parameter.grad = parameter.grad, None

    def add_up(self, weights: Sequence[Weights]) -> None:
        """Add up the shares' gradients in their order; zeros stand where a share has none and another has."""
        if self.size == 1:
            return
        for parameter in copied(weights):
            found = [kept.pop(parameter, None) for kept in self._kept]
            if any(gradient is not None for gradient in found):
                each = [torch.zeros_like(parameter) if g is None else g for g in found]
                parameter.grad = sum(each[1:], each[0])


def copied(weights: Sequence[Weights]) -> list[nn.Parameter]:
    """Return the trained parameters of which each learner has a copy, in their order."""
    return [parameter for held in weights for parameter in held.copied()]


def shares(rows: TokenRows, count: int, row_M: Tensor) -> list[Tensor]:
    """Rows in ``count`` shares of about as many tokens: the longest first, each to whoever has least."""
    if count == 1:
        return [row_M]
    length_R = rows.length_R.tolist()
    tokens, found = [0] * count, [list[int]() for _ in range(count)]
    for row in sorted(row_M.tolist(), key=lambda row: (-length_R[row], row)):
        least = tokens.index(min(tokens))
        tokens[least] += length_R[row]
        found[least].append(row)
    return [torch.tensor(sorted(own), dtype=torch.long) for own in found]


def tree_shares(rows: TokenRows, count: int, row_M: Tensor) -> list[Tensor]:
    """Rows in ``count`` shares with about as many distinct prefixes, such that rows which share much stay together."""
    return divided(rows.token_RT, rows.length_R, count, row_M) if count > 1 else [row_M]


def check_agreement(team: Team, batches: Sequence[tuple[Tensor, Tensor]]) -> None:
    """See that all learners have the same tokens and advantages, before they share them out.

    Raises:
        RunError: they have not: something that each of them worked out comes out otherwise the second time.
    """
    if len(team.mine) == team.size:
        return
    digest = hashlib.sha256()
    for tensors in batches:
        for x in tensors:
            digest.update(x.detach().cpu().contiguous().numpy().tobytes())
    found = team.gather([digest.hexdigest()])
    if len({*found}) > 1:
        raise RunError(
            "The learners of this run do not have the same episodes or advantages to learn from.",
            "A part or a source of the recipe gives something else each time it is asked: make it depend on (seed, "
            "update) alone, or set scale.learners: 1.",
        )


def means_of(team: Team, found: Sequence[Means]) -> dict[str, float]:
    """The means over all shares; ``found`` has those of this process's."""
    if team.size == 1:
        return found[0].values()
    together = Means()
    for text in team.gather([json.dumps(means.sums()) for means in found]):
        for name, (total, weight) in json.loads(text).items():
            together.add({name: total / weight}, weight)
    return together.values()
