"""Weights other than those of the trainer: older ones, a base without its adapter, ones in fewer bits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from mismatching.sampling import Engine, Reply, expected
from mismatching.talk import encode, question
from torch import Tensor, nn

LARGE = 5e7
"""Weights from which on logs have up to four turns and 500 to 700 sampled tokens, and other weights come from AdamW alone, which is there in fewer steps."""


class Probe(NamedTuple):
    """A text of the model's own, by which two models are compared."""

    prompts: Sequence[Sequence[int]]
    replies: Sequence[Reply]

    def told(self, model: Any) -> list[float]:
        """The log-probabilities that a model gives the text."""
        told: list[float] = []
        for prompt, reply in zip(self.prompts, self.replies, strict=True):
            row, span = [*prompt, *reply.ids], [(len(prompt), len(prompt) + len(reply.ids))]
            told += expected(Engine(model), row, span)
        return told

    def gap(self, ours: Sequence[float], other: Any) -> float:
        """Mean absolute difference of a model's log-probabilities from those of another, in nats."""
        theirs = self.told(other)
        return sum(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / len(theirs)


def large(model: Any) -> bool:
    """Say whether logs of a model are made shorter, so that they can be had without an accelerator."""
    return sum(one.numel() for one in model.parameters()) > LARGE


def moved(model: Any, tokenizer: Any, probe: Probe, size: float, rng: random.Random) -> tuple[Any, int]:
    """A copy that was trained on made-up text until it is so far from the model, and the number of steps."""
    other = deepcopy(model).float().train()
    rate = 10 ** rng.uniform(-4.3, -3.0)
    kinds: list[Callable[[], torch.optim.Optimizer]] = [
        lambda: torch.optim.AdamW(other.parameters(), lr=rate),
        lambda: torch.optim.SGD(other.parameters(), lr=30 * rate, momentum=0.9),
    ]
    optimizer = (kinds[0] if large(model) else rng.choice(kinds))()
    return _until(other, optimizer, model, tokenizer, probe, size, rng)


def adapted(model: Any, tokenizer: Any, probe: Probe, size: float, rng: random.Random) -> tuple[Any, int]:
    """A copy with a trained adapter of low rank merged into it, so far from the model."""
    other = deepcopy(model).float().train().requires_grad_(requires_grad=False)
    rank, rate = rng.choice([2, 4, 8, 16]), 10 ** rng.uniform(-3.3, -2.3)
    draws = torch.Generator().manual_seed(rng.getrandbits(40))
    named = [name for name in _linear(other) if rng.random() < 0.7] or [*_linear(other)]
    layers = [_Adapted(_linear(other)[name], rank, draws) for name in named]
    for name, layer in zip(named, layers, strict=True):
        _put(other, name, layer)
    optimizer = torch.optim.AdamW([p for layer in layers for p in (layer.a_RI, layer.b_OR)], lr=rate)
    other, steps = _until(other, optimizer, model, tokenizer, probe, size, rng)
    for name, layer in zip(named, layers, strict=True):
        _put(other, name, layer.merged())
    return other.eval(), steps


def in_fewer_bits(model: Any, rng: random.Random) -> Iterator[tuple[Any, str]]:
    """Copies whose matrices were rounded, each with the name of the format, in an order that is drawn."""
    kinds: list[tuple[str, Callable[[Tensor], Tensor]]] = [
        ("int8, a tensor", lambda w: _integers(w, 127, None)),
        ("int8, a channel", lambda w: _integers(w, 127, w.shape[1])),
        ("int4, a channel", lambda w: _integers(w, 7, w.shape[1])),
        ("int4, groups of 32", lambda w: _integers(w, 7, 32)),
        ("int4, groups of 64", lambda w: _integers(w, 7, 64)),
        ("float8, a tensor", lambda w: _float8(w, None)),
        ("float8, a channel", lambda w: _float8(w, w.shape[1])),
    ]
    rng.shuffle(kinds)
    for name, rounded in kinds:
        other = deepcopy(model)
        with torch.no_grad():
            for layer in _linear(other).values():
                layer.weight.copy_(rounded(layer.weight.float()).to(layer.weight.dtype))
        yield other, name


def _until(
    other: Any, optimizer: Any, model: Any, tokenizer: Any, probe: Probe, size: float, rng: random.Random
) -> tuple[Any, int]:
    ours = probe.told(model)
    for step in range(1, 201):
        text = " ".join(question(rng) for _ in range(3))
        ids = torch.tensor([encode(tokenizer, text)[:64]])
        loss = other(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], 1.0)
        optimizer.step()
        if step in (1, 2, 3, 4, 6, 8) or step % 8 == 0:
            other.eval()
            if probe.gap(ours, other) >= size:
                return other, step
            other.train()
    return other.eval(), 200


class _Adapted(nn.Module):
    def __init__(self, layer: nn.Linear, rank: int, draws: torch.Generator) -> None:
        super().__init__()
        self.layer = layer
        wide = layer.in_features**-0.5
        self.a_RI = nn.Parameter(torch.randn(rank, layer.in_features, generator=draws) * wide)
        self.b_OR = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + 2 * (x @ self.a_RI.T) @ self.b_OR.T

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        self.layer.weight += 2 * self.b_OR @ self.a_RI
        return self.layer


def _linear(model: Any) -> dict[str, nn.Linear]:
    """The matrices of the blocks, not the head, which may be the embedding too."""
    return {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear) and "lm_head" not in n}


def _put(model: Any, name: str, layer: nn.Module) -> None:
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, layer)


def _integers(weight_OI: Tensor, most: int, group: int | None) -> Tensor:
    parts = _grouped(weight_OI, group)
    scale = parts.abs().amax(-1, keepdim=True).clamp(min=1e-12) / most
    return ((parts / scale).round().clamp(-most, most) * scale).reshape(weight_OI.shape)


def _float8(weight_OI: Tensor, group: int | None) -> Tensor:
    parts = _grouped(weight_OI, group)
    scale = parts.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
    return ((parts / scale).to(torch.float8_e4m3fn).float() * scale).reshape(weight_OI.shape)


def _grouped(weight_OI: Tensor, group: int | None) -> Tensor:
    """One row for each scale; a tensor that groups do not divide has one for each channel."""
    if group is None:
        return weight_OI.reshape(1, -1)
    return weight_OI.reshape(-1, group if weight_OI.shape[1] % group == 0 else weight_OI.shape[1])
