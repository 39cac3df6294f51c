"""What runs inside vLLM's workers: weights arrive in packs of ours, by vLLM's own interface for transfers of weights.

vLLM imports this module in each worker and asks it for ``WorkerExtension``, which also makes our way of transfer known
there. Nothing else of Turnwise imports it, and importing it needs no vLLM.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from turnwise.agents.remote.protocol import UpdateInfo
from turnwise.agents.remote.transfer import WeightStore
from turnwise.errors import EngineError

BACKEND = "turnwise"


class _WorkerExtension:
    """Methods that a worker of vLLM's gets beside its own."""

    weight_transfer_engine: Any

    def turnwise_weights(self) -> dict[str, Any]:
        """The checksum of the pack that was loaded last, and whether it was loaded whole."""
        transfer = self.weight_transfer_engine
        return {"checksum": transfer.checksum, "settled": transfer.settled}


@dataclass
class PackInit:
    """Nothing has to be agreed beforehand."""


@dataclass
class PackUpdate:
    """An :class:`UpdateInfo` as vLLM hands it over."""

    checksum: str
    path: str = ""
    host: str = ""
    port: int = 0
    key: str = ""
    base: dict[str, Any] | None = None


@functools.cache
def _transfer() -> type[Any]:
    """The class that vLLM makes for each worker; made here because its base is vLLM's."""
    from vllm.distributed.weight_transfer.base import WeightTransferEngine
    from vllm.model_executor.model_loader.reload.layerwise import (
        finalize_layerwise_reload,
        initialize_layerwise_reload,
    )

    class PackTransfer(WeightTransferEngine[Any, Any]):
        """Loads packs. A pack is fetched and compared whole before the model is touched."""

        init_info_cls = PackInit
        update_info_cls = PackUpdate
        checksum, settled, arrived = "", True, ""
        store: WeightStore | None = None

        def init_transfer_engine(self, init_info: PackInit) -> None:
            """There is nothing to connect."""

        def start_weight_update(self) -> None:
            self.arrived = ""

        def receive_weights(self, update_info: PackUpdate) -> None:
            info = UpdateInfo(**vars(update_info))
            self.store = self.store or WeightStore()
            tensors = self.store.fetch(info)
            self.settled = False
            initialize_layerwise_reload(self.model)
            wanted = {name for name, _ in self.model.named_parameters()}
            model: Any = self.model
            loaded = model.load_weights(tensors)
            finalize_layerwise_reload(self.model, self.model_config)
            missing = sorted(wanted - loaded) if loaded is not None else []
            if missing:
                raise EngineError(f"The pack lacks {', '.join(missing[:4])}.", "Publish all tensors.")
            self.arrived = info.whole

        def finish_weight_update(self) -> None:
            if not self.arrived:
                raise EngineError("No weights have come.", "Begin with /start_weight_update.")
            self.checksum, self.settled = self.arrived, True

        def shutdown(self) -> None:
            """There is nothing to release."""

    return PackTransfer


def _register() -> None:
    from vllm.distributed.weight_transfer import WeightTransferEngineFactory

    if BACKEND not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(BACKEND, __name__, "PackTransfer")


def __getattr__(name: str) -> Any:
    """What vLLM asks for by name."""
    if name == "WorkerExtension":
        _register()
        return _WorkerExtension
    if name == "PackTransfer":
        return _transfer()
    raise AttributeError(name)
