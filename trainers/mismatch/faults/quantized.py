"""An engine that computed with the right weights in fewer bits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, Floats, detects

TOKENS, READ = 150, 600
"""So many tokens are scored with each way to round the weights, of rows of so many tokens."""
SHARE = 0.75
"""What the best way may leave of the differences where the engine's own way is another one."""
Bits = Literal["int8", "int4", "float8"]
_LARGEST = {"int8": 127, "int4": 7, "float8": 448}


class Rounding(NamedTuple):
    """A way to write weights in fewer bits: how many weights share a scale (0: a tensor's, −1: a channel's), and whether the head is among them."""

    bits: Bits
    share: int
    head: bool = True
    whole: bool = False

    def __str__(self) -> str:
        scale = {0: "a tensor", -1: "a channel"}.get(self.share, f"{self.share} weights")
        return f"{self.bits}, with one scale for {scale}{'' if self.head else ', without the head'}"


_SCALES: tuple[tuple[Bits, tuple[int, ...]], ...] = (
    ("int8", (-1, 0, 128, 64, 32)),
    ("int4", (32, 64, 128, -1, 0)),
    ("float8", (0, -1)),
)
_WAYS = tuple(
    Rounding(bits, share, head, whole)
    for bits, shares in _SCALES
    for share in shares
    for head, whole in ((True, False), (False, False), (True, True))
)


@detects(cost=3)
def quantized(case: MismatchCase) -> Iterator[Explanation]:
    """Round the model's weights in the usual ways, and look whether its errors are the engine's."""
    index_M = case.some(case.looked_N, TOKENS, READ)
    best: tuple[float, Rounding, Floats] | None = None
    for way in _WAYS:
        if not fits(case.models.model, way):
            continue
        expected_N = case.by_another(rounded(case.models.model, way), index_M)
        left = case.left(expected_N, index_M)
        if best is None or left < best[0]:
            best = left, way, expected_N
    if best is not None:
        yield Explanation("quantized_engine", f"weights in {best[1]}", best[2], data={"way": str(best[1])})


def _layers(model: nn.Module, way: Rounding) -> Iterator[nn.Module]:
    head: Any = model.get_output_embeddings()  # pyright: ignore
    for layer in model.modules():
        linear = isinstance(layer, nn.Linear) or type(layer).__name__ == "Conv1D"
        if (linear and (way.head or layer is not head)) or (way.whole and isinstance(layer, nn.Embedding)):
            yield layer


def fits(model: nn.Module, way: Rounding) -> bool:
    """Say whether the weights can be grouped in that way, and whether it rounds anything else than the others do."""
    layers = [*_layers(model, way)]
    return bool(layers) and all(way.share <= 0 or layer.weight.numel() % way.share == 0 for layer in layers)  # pyright: ignore


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
    groups = weight_OI.reshape(
        {0: 1, -1: len(weight_OI)}.get(way.share, -1), -1 if way.share <= 0 else way.share
    )
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-12) / _LARGEST[way.bits]
    scaled = groups / scale
    low = scaled.to(torch.float8_e4m3fn).to(scaled.dtype) if way.bits == "float8" else scaled.round()
    return (low * scale).reshape(weight_OI.shape)
