"""An engine that computed with the right weights in fewer bits."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from turnwise.trainers.mismatch.case import NOTHING, MismatchCase
from turnwise.trainers.mismatch.core import Explanation, Floats, Ints, detects

TOKENS, READ = 200, 800
"""So many tokens are scored with a way to round the weights that promises anything, of rows of so many tokens."""
FEW, FEW_READ, PROMISING = 40, 160, 0.9
"""The same of each way first, and the share of their differences that one may leave which is looked into."""
FAR = 6.0
"""Ways whose errors are so many times larger or smaller than the log's differences are not looked into."""
Bits = Literal["int8", "int4", "float8"]
Zero = Literal["symmetric", "to the power", "asymmetric"]
_HALF = {"int8": 128, "int4": 8}
_SHARES: Mapping[Bits, tuple[int, ...]] = {
    "int8": (-1, 0, 128, 64, 32),
    "int4": (-1, 0, 128, 64, 32),
    "float8": (-1, 0),
}
_ZEROS: Mapping[Bits, tuple[Zero, ...]] = {
    "int8": ("symmetric", "to the power", "asymmetric"),
    "int4": ("symmetric", "to the power", "asymmetric"),
    "float8": ("symmetric",),
}


class Rounding(NamedTuple):
    """A way to write weights in fewer bits.

    Attributes:
        bits: of a weight.
        share: how many weights have a scale in common; 0: a tensor's, −1: a channel's.
        zero: the range is as wide above zero as below, so that the largest weight is 2^(bits − 1) − 1 or 2^(bits − 1); or it is the weights' own.
        head: the output head is rounded.
        embedding: the input embedding is rounded.
    """

    bits: Bits
    share: int = -1
    zero: Zero = "symmetric"
    head: bool = False
    embedding: bool = False

    def __str__(self) -> str:
        scale = {0: "a tensor", -1: "a channel"}.get(self.share, f"{self.share} weights")
        parts = [f"{self.bits}, with one scale for {scale}"]
        parts += ["with a zero point"] * (self.zero == "asymmetric")
        parts += ["with the head"] * self.head + ["with the embedding"] * self.embedding
        return ", ".join(parts)


@detects(cost=3, numbers=True)
def quantized(case: MismatchCase) -> Iterator[Explanation]:
    """Round the model's weights in the usual ways, and look whether its errors are the engine's."""
    few_M, index_M = (case.some(case.looked_N, *size) for size in ((FEW, FEW_READ), (TOKENS, READ)))
    tried: dict[Rounding, tuple[float, Floats]] = {}

    def look(way: Rounding) -> float:
        if way not in tried and fits(case.models.model, way):
            other = rounded(case.models.model, way)
            expected_N = case.by_another(other, few_M)
            if case.left(expected_N, few_M) <= PROMISING:
                expected_N = case.by_another(other, index_M)
            tried[way] = case.left(expected_N, index_M), expected_N
        return tried[way][0] if way in tried else math.inf

    logged = _size(case, few_M, case.logged_N)
    for head in (False, True):  # engines keep the output head as it is, as a rule
        for way in _like(case, few_M, logged, tried, look, head=head):
            if look(way) <= NOTHING:
                break
        if min(map(look, tried), default=math.inf) <= NOTHING:
            break
    else:
        for way in sorted(tried, key=look)[:2]:
            look(way._replace(embedding=True))
    if tried:
        best = min(tried, key=look)
        yield Explanation("quantized_engine", f"weights in {best}", tried[best][1], data={"way": str(best)})


def _like(
    case: MismatchCase,
    index_M: Ints,
    logged: float,
    tried: Mapping[Rounding, tuple[float, Floats]],
    look: Callable[[Rounding], float],
    *,
    head: bool,
) -> Iterator[Rounding]:
    """Ways whose errors are about as large as the log's differences, one of each number of bits first."""
    plain = [Rounding(bits, head=head) for bits in _SHARES]
    yield from plain
    for way in plain:
        look(way)
        if way in tried and 1 / FAR < _size(case, index_M, tried[way][1]) / max(logged, 1e-9) < FAR:
            for share in _SHARES[way.bits]:
                for zero in _ZEROS[way.bits]:
                    yield way._replace(share=share, zero=zero)


def _size(case: MismatchCase, index_M: Ints, other_N: Floats) -> float:
    """The typical difference of log-probabilities from the model's."""
    size_M = (np.abs(other_N - case.expected_N) / case.unit_N)[index_M]
    return float(np.median(size_M))


def _layers(model: nn.Module, way: Rounding) -> Iterator[nn.Module]:
    head: Any = model.get_output_embeddings()  # pyright: ignore
    for layer in model.modules():
        linear = isinstance(layer, nn.Linear) or type(layer).__name__ == "Conv1D"
        if (linear and (way.head or layer is not head)) or (
            way.embedding and isinstance(layer, nn.Embedding)
        ):
            yield layer


def fits(model: nn.Module, way: Rounding) -> bool:
    """Say whether the weights can be grouped in that way, and whether it rounds anything else than the others do."""
    return any(way.share <= 0 or layer.weight.shape[-1] % way.share == 0 for layer in _layers(model, way))  # pyright: ignore


@torch.no_grad()
def rounded(model: nn.Module, way: Rounding) -> nn.Module:
    """A copy of a model with its matrices rounded."""
    other = copy.deepcopy(model)
    done = set[int]()
    for layer in _layers(other, way):
        weight: Any = layer.weight
        if id(weight) not in done:
            done.add(id(weight))
            weight.copy_(_rounded(weight, way))
    return other


def _rounded(weight_OI: Tensor, way: Rounding) -> Tensor:
    whole = weight_OI.shape[-1] % way.share == 0 if way.share > 0 else True
    share = way.share if whole else -1  # a channel that groups do not divide has one scale
    groups = weight_OI.reshape({0: 1, -1: len(weight_OI)}.get(share, -1), -1 if share <= 0 else share)
    if way.bits == "float8":
        scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
        return ((groups / scale).to(torch.float8_e4m3fn).to(groups.dtype) * scale).reshape(weight_OI.shape)
    half = _HALF[way.bits]
    if way.zero == "asymmetric":
        low, high = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True).clamp(min=0)
        scale = ((high - low) / (2 * half - 1)).clamp(min=1e-12)
        zero = (-low / scale).round()
        return (
            (((groups / scale).round() + zero).clamp(0, 2 * half - 1) - zero)
            .mul(scale)
            .reshape(weight_OI.shape)
        )
    most = half - 1 if way.zero == "symmetric" else half
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-12) / most
    return ((groups / scale).round().clamp(-half, half - 1) * scale).reshape(weight_OI.shape)
