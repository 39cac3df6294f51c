"""Code that runs inside vLLM's workers: weights arrive by vLLM's own interface for transfers of weights, in packs of ours
or, on CUDA, by one of vLLM's own transfers, which stands behind ours (:mod:`turnwise.agents.remote.vllm_transfer`).

vLLM imports this module in each worker and asks it for ``WorkerExtension``, which also makes our way of transfer known
there. Nothing else of Turnwise imports it, and importing it needs no vLLM.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from turnwise.agents.remote.adapters import Adapter, read_adapters
from turnwise.agents.remote.protocol import UpdateInfo, whole_checksum
from turnwise.agents.remote.transfer import WeightStore
from turnwise.agents.remote.vllm_transfer import WAYS, Holds, digest_of, from_json, tensor_row
from turnwise.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor

BACKEND = "turnwise"


class _WorkerExtension:
    """Methods that a worker of vLLM's gets beside its own."""

    weight_transfer_engine: Any

    def turnwise_weights(self) -> dict[str, Any]:
        """The checksum of what was loaded last, whether it was loaded whole, and the GPU's id; empty on a CPU."""
        transfer = self.weight_transfer_engine
        return {"checksum": transfer.checksum, "settled": transfer.settled, "gpu": gpu_of(transfer.device)}


def gpu_of(device: Any) -> str:
    """The id of a CUDA device, the same in every process; empty where it is none."""
    import torch

    return str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else ""


@dataclass
class TransferInit:
    """The way in which weights will come: by the transfer of vLLM's that is called ``way``, with what that asks for
    beforehand."""

    way: str
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class TransferUpdate:
    """An :class:`UpdateInfo` as vLLM hands it over; or, of vLLM's transfer that is called ``way``, its own facts."""

    checksum: str = ""
    path: str = ""
    host: str = ""
    port: int = 0
    key: str = ""
    base: dict[str, Any] | None = None
    way: str = ""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    holds: Holds = "whole"

    @property
    def pack(self) -> UpdateInfo:
        own = {name: value for name, value in vars(self).items() if name not in ("way", "facts", "holds")}
        return UpdateInfo(**own)


class NotedModel:
    """A model as weights are loaded into it: what it was given is summed up, what it took is noted.

    Of a base the tensors are kept on the CPU; adapters are kept and not loaded.
    """

    def __init__(self, model: Any, holds: Holds) -> None:
        self.model, self.holds = model, holds
        self.given: list[tuple[str, str, list[int], str]] = []
        self.missing = {name for name, _ in model.named_parameters()}
        self.kept: dict[str, Tensor] = {}

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> Any:
        """Load weights."""
        part = list(weights)
        self.given += [tensor_row(name, tensor) for name, tensor in part]
        if self.holds == "adapters":  # buffers are used again
            self.kept |= {name: tensor.clone() for name, tensor in part}
            return None
        if self.holds == "base":
            self.kept |= {name: tensor.to("cpu", copy=True) for name, tensor in part}
        return self._load(part)

    def load_merged(self, base: Mapping[str, Tensor]) -> None:
        """Load a base with the adapters that came.

        Raises:
            EngineError: they are not of this base.
        """
        adapters = read_adapters(base, self.kept.items())
        self._load(_merged(base, adapters))

    def _load(self, weights: Iterable[tuple[str, Tensor]]) -> Any:
        loaded = self.model.load_weights(weights)
        self.missing = self.missing - set(loaded) if loaded is not None else set()
        return loaded


def _merged(base: Mapping[str, Tensor], adapters: Mapping[str, Adapter]) -> Iterator[tuple[str, Tensor]]:
    """All weights, the adapters added where these are."""
    for name, tensor in base.items():
        adapter = adapters.get(name)
        yield name, tensor if adapter is None else adapter.added_to(tensor.to(adapter.a_KI.device))


class GpuTransfer:
    """A transfer of vLLM's own (its worker side), and what it has brought since an update began.

    Args:
        engine: vLLM's.
    """

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self._noted: NotedModel | None = None
        self._base: dict[str, Tensor] = {}  # on the CPU
        self._checksum = ""

    def receive(self, facts: dict[str, Any], holds: Holds) -> None:
        """Take one part of an update, of which there may be several, into the model."""
        if self._noted is None:
            if holds != "adapters":
                self._base, self._checksum = {}, ""  # two are not held at a time
                self.engine.start_weight_update()
            self._noted = NotedModel(self.engine.model, holds)
        model = self.engine.model
        self.engine.model = self._noted
        try:
            self.engine.receive_weights(self.engine.parse_update_info(from_json(facts)))
        finally:
            self.engine.model = model

    def finish(self) -> str:
        """The checksum of what came, now that it is in the model.

        Raises:
            EngineError: nothing came, not all of the model, or adapters of another base.
        """
        noted, self._noted = self._noted, None
        if noted is None:
            raise EngineError("No weights have come.", "Begin with /start_weight_update.")
        if noted.holds == "adapters":
            if not self._base:
                raise EngineError(
                    "Adapters have come, and not what they are added to.", "Publish all tensors."
                )
            self.engine.start_weight_update()
            noted.load_merged(self._base)
        self.engine.finish_weight_update()
        refuse_missing(noted.missing)
        found = digest_of(noted.given)
        if noted.holds == "adapters":
            return whole_checksum(found, self._checksum)
        if noted.holds == "base":
            self._base, self._checksum = noted.kept, found
        return found

    def forget(self) -> None:
        """Drop what came of an update that was not finished; it is no part of the next."""
        self._noted = None


def refuse_missing(missing: Iterable[str]) -> None:
    """Refuse weights that leave a part of the model as it was.

    Raises:
        EngineError: some are missing.
    """
    if names := sorted(missing):
        raise EngineError(f"The weights lack {', '.join(names[:4])}.", "Publish all tensors.")


@functools.cache
def _transfer() -> type[Any]:
    """The class that vLLM makes for each worker; made here because its base is vLLM's."""
    from vllm.distributed.weight_transfer.base import WeightTransferEngine
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
    from vllm.model_executor.model_loader.reload.layerwise import (
        finalize_layerwise_reload,
        initialize_layerwise_reload,
    )

    class PackTransfer(WeightTransferEngine[Any, Any]):
        """Loads packs, which are fetched and compared whole before the model is touched, and what vLLM's own transfers bring."""

        init_info_cls = TransferInit
        update_info_cls = TransferUpdate
        checksum, settled, arrived = "", True, ""
        store: WeightStore | None = None
        own: GpuTransfer | None = None

        def init_transfer_engine(self, init_info: TransferInit) -> None:
            """Join the trainer by a transfer of vLLM's own; packs need nothing beforehand."""
            if self.own is not None:  # of a trainer that is gone
                self.own.engine.shutdown()
            if init_info.way not in WAYS:
                raise EngineError(f"There is no way {init_info.way!r} here.", f"Join by {' or '.join(WAYS)}.")
            made: Any = WeightTransferEngineFactory._registry[init_info.way]()
            engine = made(self.config, self.vllm_config, self.device, self.model)
            engine.init_transfer_engine(engine.parse_init_info(init_info.facts))
            self.own = GpuTransfer(engine)

        def start_weight_update(self) -> None:
            self.arrived = ""
            if self.own is not None:
                self.own.forget()

        def receive_weights(self, update_info: TransferUpdate) -> None:
            if update_info.way:
                if self.own is None:
                    raise EngineError(
                        "Nobody has joined this engine.", "Begin with /init_weight_transfer_engine."
                    )
                self.settled = False
                self.own.receive(update_info.facts, update_info.holds)
                return
            info = update_info.pack
            self.store = self.store or WeightStore()
            tensors = self.store.fetch(info)
            self.settled = False
            initialize_layerwise_reload(self.model)
            wanted = {name for name, _ in self.model.named_parameters()}
            model: Any = self.model
            loaded = model.load_weights(tensors)
            finalize_layerwise_reload(self.model, self.model_config)
            refuse_missing(wanted - loaded if loaded is not None else ())
            self.arrived = info.whole

        def finish_weight_update(self) -> None:
            if not self.arrived and self.own is not None:
                self.arrived = self.own.finish()
            if not self.arrived:
                raise EngineError("No weights have come.", "Begin with /start_weight_update.")
            self.checksum, self.settled = self.arrived, True

        def shutdown(self) -> None:
            if self.own is not None:
                self.own.engine.shutdown()

    return PackTransfer


def _register() -> None:
    from vllm.distributed.weight_transfer import WeightTransferEngineFactory

    if BACKEND not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(BACKEND, __name__, "PackTransfer")


def __getattr__(name: str) -> Any:
    """Make what vLLM asks for by name."""
    if name == "WorkerExtension":
        _register()
        return _WorkerExtension
    if name == "PackTransfer":
        return _transfer()
    raise AttributeError(name)
