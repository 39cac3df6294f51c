"""The distributions of a model at the places of sampled tokens, kept so that no question about sampling needs another pass."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from turnwise.trainers.learn.model import hidden_states, own_logits
from turnwise.trainers.mismatch.core import Floats, Ints

BETAS = np.geomspace(0.2, 8.0, 21)
"""Inverse temperatures at which distributions are normalised; between them a cubic curve is exact to 1e-5 nats."""
KEPT = 1024
"""So many of the likeliest tokens are kept of each place. What truncated sampling leaves lies among them, or is nearly all."""
CHUNK = 2**24
"""Logits that are worked on at a time."""


class AskedPlaces(NamedTuple):
    """A sequence, and the positions in it whose tokens are looked at."""

    ids: tuple[int, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Distributions:
    """Distributions at temperature 1 at N places, without the vocabulary's axis.

    Attributes:
        logp_N: log-probability of the token that stands there.
        rank_N: how many tokens are likelier.
        top_NK: log-probabilities of the likeliest tokens, falling.
        norm_NG, slope_NG: log Σ p^β for each β of :data:`BETAS`, and its derivative.
        end_N: log-probability of all tokens that end a turn.
        square_N: Σ p².
    """

    logp_N: Floats
    rank_N: Ints
    top_NK: Floats
    norm_NG: Floats
    slope_NG: Floats
    end_N: Floats
    square_N: Floats

    def __len__(self) -> int:
        return len(self.logp_N)

    def at(self, index_M: Any) -> Distributions:
        """Some of them."""
        return Distributions(*(getattr(self, field.name)[index_M] for field in fields(self)))

    def norm(self, beta_N: Floats) -> Floats:
        """Return log Σ p^β at each place."""
        x = np.log(np.clip(beta_N, BETAS[0], BETAS[-1]))
        grid = np.log(BETAS)
        g = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, len(grid) - 2)
        step = grid[1] - grid[0]
        t, rows = (x - grid[g]) / step, np.arange(len(x))
        y0, y1 = self.norm_NG[rows, g], self.norm_NG[rows, g + 1]
        m0, m1 = (self.slope_NG[rows, at] * BETAS[at] * step for at in (g, g + 1))
        a, b = t * t * (3 - 2 * t), t * (1 - t)
        return y0 * (1 - a) + y1 * a + b * ((1 - t) * m0 - t * m1)

    def tempered(self, beta_N: Floats) -> Floats:
        """Log-probability of the tokens at inverse temperatures."""
        return beta_N * self.logp_N - self.norm(beta_N)

    def top(self, beta_N: Floats) -> Floats:
        """The likeliest log-probabilities at inverse temperatures, (N, K)."""
        return beta_N[:, None] * self.top_NK - self.norm(beta_N)[:, None]


def joined(parts: Sequence[Distributions]) -> Distributions:
    """Put places one after the other."""
    return Distributions(
        *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Distributions))
    )


@torch.no_grad()
def distributions(
    model: nn.Module, asked: Sequence[AskedPlaces], ends: Sequence[int] = (), *, full: bool = True
) -> Distributions:
    """Read sequences with a model.

    Args:
        model: in whichever type it is.
        asked: sequences and places.
        ends: tokens that end a turn.
        full: else only the tokens' own log-probabilities are reckoned, and the rest is empty.
    """
    training, device = model.training, next(model.parameters()).device
    model.eval()
    parts: list[Distributions] = []
    try:
        for ids, positions in asked:
            if not positions:
                continue
            reach = max(positions)
            hidden_TD = hidden_states(model, torch.tensor([ids[:reach]], device=device))[0]
            place_N = torch.tensor(positions, device=device)
            token_N = torch.tensor(ids, device=device)[place_N] if reach < len(ids) else _past(ids, place_N)
            parts.extend(_parts(model, hidden_TD[place_N - 1], token_N, ends, full))
    finally:
        model.train(training)
    return joined(parts) if parts else _nothing()


def _past(ids: Sequence[int], place_N: Tensor) -> Tensor:
    """Tokens at places, the last of which may be just beyond the end, where nothing stands."""
    return torch.tensor([*ids, 0], device=place_N.device)[place_N]


def _parts(
    model: nn.Module, hidden_ND: Tensor, token_N: Tensor, ends: Sequence[int], full: bool
) -> Iterator[Distributions]:
    size = max(1, CHUNK // int(model.get_output_embeddings().weight.shape[0]))  # pyright: ignore
    for hidden_MD, token_M in zip(hidden_ND.split(size), token_N.split(size), strict=True):
        logp_MV = own_logits(model, hidden_MD).log_softmax(-1)
        yield _reckoned(logp_MV, token_M, ends) if full else _own(logp_MV, token_M)


def _own(logp_MV: Tensor, token_M: Tensor) -> Distributions:
    own = logp_MV.gather(-1, token_M[:, None])[:, 0].double().cpu().numpy()
    n, none = len(own), np.zeros((len(own), 0))
    return Distributions(own, np.zeros(n, np.int64), none, none, none, np.zeros(n), np.zeros(n))


def _reckoned(logp_MV: Tensor, token_M: Tensor, ends: Sequence[int]) -> Distributions:
    own_M = logp_MV.gather(-1, token_M[:, None])
    norms, slopes = list[Tensor](), list[Tensor]()
    finite_MV = logp_MV.clamp(min=-1e4)
    scaled = torch.empty_like(logp_MV)
    for beta in BETAS.tolist():
        torch.mul(logp_MV, beta, out=scaled).exp_()
        mass = scaled.sum(-1)
        norms.append(mass.log())
        slopes.append(torch.linalg.vecdot(scaled, finite_MV) / mass)
    end_M = logp_MV[:, list(ends)].logsumexp(-1) if ends else torch.full_like(own_M[:, 0], -torch.inf)

    def plain(x: Tensor) -> Floats:
        return x.double().cpu().numpy()

    return Distributions(
        plain(own_M[:, 0]),
        (logp_MV > own_M).sum(-1).cpu().numpy(),
        plain(logp_MV.topk(min(KEPT, logp_MV.shape[-1]), dim=-1).values),
        plain(torch.stack(norms, -1)),
        plain(torch.stack(slopes, -1)),
        plain(end_M),
        plain((2 * logp_MV).logsumexp(-1).exp()),
    )


def _nothing() -> Distributions:
    none, flat = np.zeros((0, 0)), np.zeros(0)
    return Distributions(flat, flat.astype(np.int64), none, none, none, flat, flat)


def in_half(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy of a model that computes in half precision.

    On a CPU the products of its matrices are summed in float32 and rounded once, as engines' kernels do. A CPU without instructions for half
    precision is five times slower at the same.
    """
    other = copy.deepcopy(model).to(dtype)
    if next(other.parameters()).is_cuda:
        return other
    for name, layer in [*other.named_modules()]:
        if type(layer) is nn.Linear:
            parent, _, own = name.rpartition(".")
            setattr(other.get_submodule(parent), own, _SummedInFloat32(layer))
    return other


class _SummedInFloat32(nn.Linear):
    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, bias=False, device="meta")
        self.weight = nn.Parameter(layer.weight.detach().float(), requires_grad=False)
        self.bias = (
            None if layer.bias is None else nn.Parameter(layer.bias.detach().float(), requires_grad=False)
        )

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.linear(input.float(), self.weight, self.bias).to(input.dtype)
