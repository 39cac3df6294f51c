"""A small network over the words of turns, trained beside the policy: what tells two kinds of turns apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from zlib import crc32

import torch
from torch import Tensor

from turnwise.agents.core import Episode, Turn
from turnwise.agents.log.episode_log import read_episodes
from turnwise.errors import RunError

WIDTH = 256


def word_features(turns: Iterable[Turn]) -> Tensor:
    """The words that each turn was told last and those of its act, apart, hashed and of length 1 together, (N, D).

    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> turns = with_words(episode([0, 0, 0]), ["go go east", "East, go!", "west"]).trajectory.turns
    >>> (word_features(turns) @ word_features(turns).T).round(decimals=4).tolist()[0]
    [1.0, 1.0, 0.0]
    """
    found = [_counts(turn) for turn in turns]
    x_ND = torch.stack(found) if found else torch.zeros(0, WIDTH, dtype=torch.float64)
    return torch.nn.functional.normalize(x_ND, dim=-1)


def _counts(turn: Turn) -> Tensor:
    called = [
        str(value) for call in turn.action.tool_calls for value in (call.name, *call.arguments.values())
    ]
    told = turn.observation[-1].content if turn.observation else ""
    x_D = torch.zeros(WIDTH, dtype=torch.float64)
    for side, text in (("told", told), ("said", " ".join([turn.action.content, *called]))):
        for word in {*re.findall(r"\w+", text.lower())}:
            x_D[crc32(f"{side} {word}".encode()) % WIDTH] = 1.0
    return x_D


def logged(part: str, path: str, *, solved: bool = False) -> list[Episode]:
    """The episodes of a log that count, or those that were ``solved``.

    Raises:
        RunError: there is no such log, or nothing of this kind in it.
    """
    found = list[Episode]()
    if Path(path).is_file():
        found = [one for one in read_episodes(path) if one.outcome.counts and (one.success or not solved)]
    if not found:
        raise RunError(
            f"{part}: {path} has no{' solved' if solved else ''} episode.",
            "Name the episodes.jsonl.zst of a run or of `turnwise eval SUITE --split train --policy … --out FOLDER`.",
        )
    return found


class WordNet:
    """D(x) = v·tanh(W·x + b) + c, by plain gradient descent; ``spectral`` divides W and v by their largest singular values.

    >>> net, x_ND = WordNet(0, hidden=4, learning_rate=1.0), torch.eye(2, WIDTH, dtype=torch.float64)
    >>> for _ in range(50):
    ...     net.descend(torch.nn.functional.softplus(net(x_ND) * torch.tensor([-1.0, 1.0])).mean())
    >>> [x > 0 for x in net(x_ND).tolist()]
    [True, False]
    """

    def __init__(self, seed: int, *, hidden: int, learning_rate: float, spectral: bool = False) -> None:
        drawn = torch.Generator().manual_seed(seed)
        self.first_HD = torch.randn(hidden, WIDTH, dtype=torch.float64, generator=drawn) / WIDTH**0.5
        self.last_H = torch.randn(hidden, dtype=torch.float64, generator=drawn) / hidden**0.5
        self.shift_H, self.shift = (
            torch.zeros(hidden, dtype=torch.float64),
            torch.zeros((), dtype=torch.float64),
        )
        self.learning_rate, self.spectral = learning_rate, spectral
        for tensor in self.tensors().values():
            tensor.requires_grad_()

    def __call__(self, x_ND: Tensor) -> Tensor:
        first_HD, last_H = self._weights()
        return torch.tanh(x_ND @ first_HD.T + self.shift_H) @ last_H + self.shift

    def slope(self, x_ND: Tensor) -> Tensor:
        """‖∇_x D‖ at each x, (N,)."""
        first_HD, last_H = self._weights()
        steep_NH = 1 - torch.tanh(x_ND @ first_HD.T + self.shift_H) ** 2
        return ((steep_NH * last_H) @ first_HD).norm(dim=-1)

    def _weights(self) -> tuple[Tensor, Tensor]:
        if not self.spectral:
            return self.first_HD, self.last_H
        return self.first_HD / torch.linalg.matrix_norm(self.first_HD, 2), self.last_H / self.last_H.norm()

    def descend(self, loss: Tensor) -> None:
        """Take one step against the gradient of a loss."""
        weights = [*self.tensors().values()]
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight -= self.learning_rate * slope

    def tensors(self) -> dict[str, Tensor]:
        """All of its weights, by name."""
        return {"first": self.first_HD, "last": self.last_H, "shift_first": self.shift_H, "shift": self.shift}

    def kept(self) -> dict[str, Tensor]:
        """Copies of its weights, for a checkpoint."""
        return {name: tensor.detach().clone() for name, tensor in self.tensors().items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Put a checkpoint's weights back; what else is there is left alone."""
        with torch.no_grad():
            for name, tensor in self.tensors().items():
                tensor.copy_(tensors[name])


def by_turns(value_N: Tensor, lengths: Sequence[int], shape: torch.Size) -> Tensor:
    """Values of all turns, one episode after the other, as (B, K); 0 where there is no turn.

    >>> by_turns(torch.tensor([1.0, 2.0, 3.0]), [1, 0, 2], torch.Size((3, 2))).tolist()
    [[1.0, 0.0], [0.0, 0.0], [2.0, 3.0]]
    """
    found_BK = torch.zeros(shape, dtype=value_N.dtype)
    for b, part in enumerate(value_N.detach().split([*lengths])):
        found_BK[b, : len(part)] = part
    return found_BK
