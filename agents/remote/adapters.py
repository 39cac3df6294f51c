"""Weights as a base that stays and low-rank adapters that change (LoRA, Hu et al. 2021, 2106.09685).

Engines elsewhere keep the base and are sent the adapters alone; they add them up with the arithmetic of the trainer's own
merging, so that what they sample from are the merged weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from turnwise.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor

_A, _B, _SCALE = ".lora_A", ".lora_B", ".lora_scale"


class Adapter(NamedTuple):
    """The addition to one weight: ``scale · B A``.

    Attributes:
        a_KI: (rank, inputs).
        b_OK: (outputs, rank).
        scale: alpha / rank.
    """

    a_KI: Tensor
    b_OK: Tensor
    scale: float

    def added_to(self, weight_OI: Tensor) -> Tensor:
        """The weight with the adapter; the weight itself stays as it is."""
        delta_OI = (self.b_OK @ self.a_KI) * self.scale
        return weight_OI + delta_OI.to(weight_OI.dtype)

    def fits(self, weight_OI: Tensor) -> bool:
        """Say whether it can be added to this weight."""
        shapes = self.a_KI.dim(), self.b_OK.dim(), weight_OI.dim()
        return shapes == (2, 2, 2) and (
            tuple(weight_OI.shape) == (self.b_OK.shape[0], self.a_KI.shape[1])
            and self.a_KI.shape[0] == self.b_OK.shape[1]
        )


class AdaptedWeights(NamedTuple):
    """All weights of a model under the names of a checkpoint.

    Attributes:
        owner: the model whose they are.
        base: without adapters.
        adapters: by the names of the weights that they are added to.
    """

    owner: object
    base: Mapping[str, Tensor]
    adapters: Mapping[str, Adapter]


def merged(base: Mapping[str, Tensor], adapters: Mapping[str, Adapter]) -> Iterator[tuple[str, Tensor]]:
    """All weights, one after the other, with the adapters added."""
    for name, tensor in base.items():
        adapter = adapters.get(name)
        yield name, tensor if adapter is None else adapter.added_to(tensor)


def adapter_tensors(adapters: Mapping[str, Adapter]) -> Iterator[tuple[str, Tensor]]:
    """Adapters as tensors of a pack."""
    import torch

    for name, adapter in adapters.items():
        yield name + _A, adapter.a_KI
        yield name + _B, adapter.b_OK
        yield name + _SCALE, torch.tensor(adapter.scale, dtype=adapter.a_KI.dtype)


def read_adapters(base: Mapping[str, Tensor], tensors: Iterable[tuple[str, Tensor]]) -> dict[str, Adapter]:
    """Adapters as they came in a pack, to be added to ``base``.

    Raises:
        EngineError: they are not of this base.
    """
    found = dict(tensors)
    adapters: dict[str, Adapter] = {}
    for name in [key.removesuffix(_A) for key in found if key.endswith(_A)]:
        parts = [found.pop(name + part, None) for part in (_A, _B, _SCALE)]
        a_KI, b_OK, scale = parts
        if a_KI is None or b_OK is None or scale is None or scale.numel() != 1:
            raise _strange(f"the adapter of {name} is not whole")
        adapter = Adapter(a_KI, b_OK, scale.item())
        if name not in base or not adapter.fits(base[name]):
            raise _strange(f"there is no weight {name} that its adapter could be added to")
        adapters[name] = adapter
    if found:
        raise _strange(f"{next(iter(found))} is no part of an adapter")
    return adapters


def _strange(why: str) -> EngineError:
    return EngineError(f"The adapters that came are not used: {why}.", "Publish the weights whole.")
