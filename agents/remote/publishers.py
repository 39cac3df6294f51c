"""The ways in which weights reach engines elsewhere, by the name that ``scale.publish`` gives them (docs/engines.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

from turnwise.agents.remote.client import Delivery, RemoteServer
from turnwise.agents.remote.transfer import Publisher
from turnwise.agents.remote.vllm_transfer import IpcPublisher, NcclPublisher

if TYPE_CHECKING:
    from torch import Tensor

    from turnwise.agents.remote.adapters import AdaptedWeights


class Offered(Protocol):
    """Weights that engines are to have."""

    @property
    def whole(self) -> str:
        """The checksum of what an engine then has."""
        ...


Kept = TypeVar("Kept", bound=Offered)


class WeightPublisher(Protocol[Kept]):
    """Keeps the newest weights and brings them to engines, to those that join later too.

    Attributes:
        written: bytes that were made ready so far.
    """

    written: int

    def offer(self, weights: Iterable[tuple[str, Tensor]], dtype: str) -> Kept:
        """Keep whole weights, floating-point tensors as ``dtype``, as they are now."""
        ...

    def offer_adapters(self, weights: AdaptedWeights, dtype: str) -> Kept:
        """Keep a base and what is added to it."""
        ...

    def settle(self) -> None:
        """The newest offer is in use."""
        ...

    def withdraw(self) -> None:
        """Nobody took the newest offer: the one before it holds again."""
        ...

    def delivery(self, offer: Kept, server: RemoteServer) -> Delivery:
        """Return the delivery that brings an offer to an engine.

        Raises:
            EngineError: it cannot be brought there this way.
        """
        ...

    def close(self) -> None: ...


PUBLISHERS: Mapping[str, type[Publisher | NcclPublisher | IpcPublisher]] = MappingProxyType(
    {"auto": Publisher, "nccl": NcclPublisher, "ipc": IpcPublisher}
)
