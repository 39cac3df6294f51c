"""Weights on their way from GPU to GPU by vLLM's own transfers: NCCL to engines on other GPUs, CUDA IPC to those on ours.

vLLM's trainer side (``vllm.distributed.weight_transfer``) drives both: it makes its four calls to the engine's server, which
:class:`_Calls` passes on, and moves the tensors. What is sent is a copy in the engine's type, made when it is offered: the learner
may go on, and engines that come later get the same. Both sides sum up what they sent and were given
(:func:`device_digest`), and the engine attests it like a pack.

.. warning::
    No transfer of this module has ever moved a tensor between GPUs: there was none to run it on. What ran, on a CPU, is
    everything around vLLM's two transfers (tests/remote/test_vllm_transfer.py says what stood in for them).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import json
import socket
import threading
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from turnwise.agents.remote.adapters import AdaptedWeights, adapter_tensors
from turnwise.agents.remote.client import RemoteServer, Unreachable
from turnwise.agents.remote.protocol import whole_checksum
from turnwise.agents.remote.transfer import BaseStamp
from turnwise.errors import EngineError, MissingDependencyError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Holds: TypeAlias = Literal["whole", "base", "adapters"]
"""The kind of weights in an update: all of a model, those that adapters will be added to, or adapters."""
WAYS = ("nccl", "ipc")
"""vLLM's own transfers that are used here, by its names."""
LOOK_S = 0.1
BUFFER_BYTES = 1 << 30
"""Tensors are sent so many bytes at a time; two such buffers are in use by NCCL, one by CUDA IPC."""
_CHUNK = 1 << 22
_OTHERWISE = "Leave scale.publish out: engines of this machine then read weights from shared memory, others fetch them by TCP."
_MIX = (0x1F123BB5_9E3779B1, 0x2545F491_4F6CDD1D)


class SentTensor(NamedTuple):
    """A tensor, and the type in which it is sent."""

    name: str
    tensor: Tensor
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """Bytes that are sent."""
        return self.tensor.numel() * self.dtype.itemsize

    def made(self, *, copy: bool = False) -> Tensor:
        """Return it as it is sent."""
        return self.tensor.detach().to(self.dtype, copy=copy).contiguous()


class StagedBase(NamedTuple):
    """Weights that adapters are added to: the learner's own, of which no copy is made, and their checksum."""

    tensors: tuple[SentTensor, ...]
    whole: str
    stamp: BaseStamp


class StagedWeights(NamedTuple):
    """A copy of the weights in the engines' type, where the learner's are; or of adapters, beside their base. ``whole`` is their checksum."""

    tensors: tuple[SentTensor, ...]
    whole: str
    base: StagedBase | None = None


def device_digest(tensor: Tensor) -> str:
    """A sum of a tensor's bytes, each times a number of its place, mod 2⁶⁴: the same on every device, without a copy on the CPU.

    It shows damage and mistakes (any one byte that differs shows), and keeps nobody from making another tensor of the same sum.
    """
    import torch

    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for start in range(0, flat.numel(), _CHUNK):
        part = flat[start : start + _CHUNK].to(torch.int64)
        place = torch.arange(start + 1, start + 1 + part.numel(), device=flat.device)
        total += (part * _mixed(place)).sum()
    return f"{flat.numel():x}-{total.item() % 2**64:016x}"


def _mixed(place: Tensor) -> Tensor:
    """An odd number for each place; products overflow, which is meant."""
    first, second = _MIX
    place = place * first
    return ((place ^ (place >> 29)) * second) | 1


def tensor_row(name: str, tensor: Tensor) -> tuple[str, str, list[int], str]:
    """Return the facts of one tensor that enter the checksum."""
    return name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape), device_digest(tensor)


def digest_of(rows: Iterable[tuple[str, str, list[int], str]]) -> str:
    """The checksum of weights, whatever their order."""
    return hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()


# --- the trainer's side --------------------------------------------------------------------------------


class _ParameterFacts(NamedTuple):
    """Facts that vLLM asks of a tensor before it is sent."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]


class _Source:
    """The staged weights as vLLM's trainer side reads them: what there is, and then each, in the same order."""

    def __init__(self) -> None:
        self.tensors: tuple[SentTensor, ...] = ()

    def metadata(self) -> list[_ParameterFacts]:
        return [_ParameterFacts(one.name, one.dtype, tuple(one.tensor.shape)) for one in self.tensors]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        return ((one.name, one.made()) for one in self.tensors)


class _Calls:
    """The four calls of vLLM's trainer side, made to one engine of ours (its ``VLLMWeightSyncClient``).

    Attributes:
        failed: the first that was not answered as it should be. vLLM's side may wait for the engine in vain then.
        holds: the kind of weights that are sent.
    """

    def __init__(self, way: str, server: RemoteServer) -> None:
        self._way, self._server = way, server
        self.version, self.seconds = 0, 600.0
        self.holds: Holds = "whole"
        self.failed: EngineError | None = None

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._call("/init_weight_transfer_engine", {"init_info": {"way": self._way, "facts": init_info}})

    def start_weight_update(self) -> None:
        self._call("/start_weight_update")

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._call(
            "/update_weights",
            {"update_info": {"way": self._way, "facts": as_json(update_info), "holds": self.holds}},
        )

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._call("/finish_weight_update", {"weight_version": weight_version or str(self.version)})

    def _call(self, path: str, body: object = None) -> None:
        try:
            self._server.call("POST", path, body, seconds=self.seconds)
        except EngineError as error:
            self.failed = self.failed or error
            raise


class _Link:
    """The link between the trainer and one engine, as long as that lives."""

    def __init__(self, way: str, server: RemoteServer) -> None:
        assert server.facts is not None
        self.instance = server.facts.instance
        self.source, self.calls = _Source(), _Calls(way, server)
        self.base = ""  # the checksum of the one that the engine keeps
        self.transfer: Any = None  # vLLM's trainer side, once it is joined

    @property
    def buffer_bytes(self) -> int:
        """The size of a buffer, into which the largest tensor fits."""
        return max([BUFFER_BYTES, *(one.size for one in self.source.tensors)])

    def abandon(self) -> None:
        """Join them no longer, in the middle of a transfer too: whoever waits for the other side comes free."""
        if self.transfer is not None:
            self.transfer.shutdown()


class _GpuPublisher:
    """Keeps the newest weights on the learner's GPU and sends them to engines' GPUs, one engine after the other.

    Adapters go alone, once an engine has the base that they are added to, which it then keeps in its CPU's memory.

    Args:
        host: this machine's address as engines reach it, to join them.

    Attributes:
        written: bytes that were staged so far.
    """

    way, most_learners = "", 64

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.check()
        self.written = 0
        self._host = host
        self._links: dict[str, _Link] = {}
        self._base: StagedBase | None = None
        self._one_at_a_time = threading.Lock()

    @classmethod
    def check(cls) -> None:
        """Refuse a machine that cannot send this way.

        Raises:
            MissingDependencyError: it has no CUDA device, or no vLLM, whose transfers these are.
        """
        import torch

        asked = f"scale.publish: {cls.way} sends weights from GPU to GPU"
        if not torch.cuda.is_available():
            raise MissingDependencyError(f"{asked}, and this process sees no CUDA device.", _OTHERWISE)
        if importlib.util.find_spec("vllm") is None:
            raise MissingDependencyError(f"{asked} by vLLM, which is not installed here.", _OTHERWISE)

    def offer(self, weights: Iterable[tuple[str, Tensor]], dtype: str) -> StagedWeights:
        """Copy whole weights, floating-point tensors as ``dtype``, to be sent from now on."""
        return self._copied(_sent(weights, dtype))

    def offer_adapters(self, weights: AdaptedWeights, dtype: str) -> StagedWeights:
        """Copy adapters, to be sent from now on, and note the base that they are added to.

        Weights that have adapters are sent in their own type, so that nothing is rounded before the two are added.
        """
        base = self._base
        if base is None or not base.stamp.holds(weights):
            sent = _sent(weights.base.items(), dtype, but=weights.adapters)
            digest = digest_of(tensor_row(one.name, one.made()) for one in sent)
            base = self._base = StagedBase(sent, digest, BaseStamp(weights))
        adapters = adapter_tensors(weights.adapters)
        own = self._copied(tuple(SentTensor(name, tensor, tensor.dtype) for name, tensor in adapters))
        return StagedWeights(own.tensors, whole_checksum(own.whole, base.whole), base)

    def _copied(self, sent: tuple[SentTensor, ...]) -> StagedWeights:
        tensors = tuple(one._replace(tensor=one.made(copy=True)) for one in sent)
        self.written += sum(one.size for one in tensors)
        return StagedWeights(tensors, digest_of(tensor_row(one.name, one.tensor) for one in tensors))

    def settle(self) -> None:
        """The newest offer is in use: whoever holds the one before it lets it go."""

    def withdraw(self) -> None:
        """Nobody took the newest offer: whoever holds the one before it has it still."""

    def delivery(self, offer: StagedWeights, server: RemoteServer) -> _GpuDelivery:
        """Return the delivery that brings an offer to an engine.

        Raises:
            EngineError: its GPUs cannot be reached this way.
        """
        assert server.facts is not None
        if why := self.misfit(server.facts.gpus):
            raise EngineError(f"The engine at {server.name} {why}.", _OTHERWISE)
        return _GpuDelivery(self, offer)

    def misfit(self, gpus: list[str]) -> str:
        """Why engines on these GPUs cannot be sent weights; empty where they can."""
        if not gpus:
            return f"takes no weights by {self.way}: only vLLM's servers on CUDA do"
        return ""

    def close(self) -> None:
        """Join no engine any more."""
        for name in [*self._links]:
            self._links.pop(name).abandon()

    def send(self, staged: StagedWeights, server: RemoteServer, version: int, seconds: float) -> None:
        """Send staged weights to an engine, which is held meanwhile.

        Raises:
            Unreachable: it does not answer, or not in time. It is joined anew the next time.
            EngineError: it refuses them, or vLLM's side failed.
        """
        with self._one_at_a_time:
            link, base = self._link(server), staged.base
            link.calls.version, link.calls.seconds, link.calls.failed = version, seconds, None
            try:
                if base is not None and link.base != base.whole:
                    self._pass(link, server, base.tensors, "base", seconds)
                self._pass(link, server, staged.tensors, "adapters" if base else "whole", seconds)
                link.base = base.whole if base else ""
            except BaseException:
                self._links.pop(server.name, None)
                link.abandon()
                raise
            finally:
                link.source.tensors = ()

    def _pass(
        self, link: _Link, server: RemoteServer, tensors: tuple[SentTensor, ...], holds: Holds, seconds: float
    ) -> None:
        """Make one update of the engine: whole weights, a base, or adapters."""
        link.source.tensors, link.calls.holds = tensors, holds
        self._watched(link, server, seconds)

    def _link(self, server: RemoteServer) -> _Link:
        """The engine's link; a new one where it was started anew."""
        assert server.facts is not None
        known = self._links.get(server.name)
        if known is not None and known.instance == server.facts.instance:
            return known
        if known is not None:
            known.abandon()
        link = self._links[server.name] = _Link(self.way, server)
        return link

    def _watched(self, link: _Link, server: RemoteServer, seconds: float) -> None:
        """Join and send in a thread that can be given up: vLLM's side waits for an engine that has died for ever."""
        broken, done = list[BaseException](), threading.Event()

        def run() -> None:
            try:
                with _device_of(link.source.tensors):
                    if link.transfer is None:
                        link.transfer = self._joined(link, server)
                    link.transfer.send_weights()
            except BaseException as error:  # noqa: BLE001 (told by the thread that waits)
                broken.append(error)
            finally:
                done.set()

        threading.Thread(target=run, name=f"turnwise-{self.way}", daemon=True).start()
        until = time.monotonic() + seconds
        while not done.wait(LOOK_S) and link.calls.failed is None:
            if time.monotonic() > until:
                raise Unreachable(
                    f"The engine at {server.name} has not taken the weights by {self.way} in {seconds:.0f} s.",
                    _OTHERWISE,
                )
        if link.calls.failed is not None:
            raise link.calls.failed
        if broken:
            said = f"{type(broken[0]).__name__} {broken[0]}"[:300]
            raise EngineError(
                f"vLLM's transfer by {self.way} to {server.name} failed: {said}", _OTHERWISE
            ) from broken[0]

    def _joined(self, link: _Link, server: RemoteServer) -> Any:
        """vLLM's trainer side, joined with the engine."""
        raise NotImplementedError


class NcclPublisher(_GpuPublisher):
    """Sends weights by NCCL's broadcast to engines on other GPUs than the learner's, of this machine or others.

    Each engine has a group of its own with the learner, so that one that ends takes no other with it. The group is joined
    at a port of ``host`` that asks for no key: the network has to be yours.
    """

    way = "nccl"

    def misfit(self, gpus: list[str]) -> str:
        if gpus and own_gpu() in gpus:
            return "samples on the learner's own GPU, where NCCL cannot send: set scale.publish to ipc"
        return super().misfit(gpus)

    def _joined(self, link: _Link, server: RemoteServer) -> Any:
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        assert server.facts is not None
        with socket.create_server((self._host, 0)) as door:
            port = door.getsockname()[1]
        info = NCCLTrainerInitInfo(
            self._host, port, 1 + len(server.facts.gpus), packed_buffer_size_bytes=link.buffer_bytes, rank=0
        )
        source: Any = link.source
        calls: Any = link.calls
        return WeightTransferTrainerFactory.trainer_init(info, client=calls, source=source)


class IpcPublisher(_GpuPublisher):
    """Hands weights to engines on the learner's own GPU, by a buffer that both see (CUDA IPC).

    With several learners vLLM's side would wait for all of them, and one publishes.
    """

    way, most_learners = "ipc", 1

    def misfit(self, gpus: list[str]) -> str:
        if gpus and gpus != [own_gpu()]:
            return "samples on other GPUs than the learner's, which CUDA IPC does not reach: set scale.publish to nccl"
        return super().misfit(gpus)

    def _joined(self, link: _Link, server: RemoteServer) -> Any:
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
        from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

        source: Any = link.source
        calls: Any = link.calls
        info = IPCTrainerInitInfo(packed=True, rank=0, packed_buffer_size_bytes=link.buffer_bytes)
        return WeightTransferTrainerFactory.trainer_init(info, client=calls, source=source)


class _GpuDelivery(NamedTuple):
    """Staged weights for one engine."""

    publisher: _GpuPublisher
    staged: StagedWeights

    @property
    def whole(self) -> str:
        return self.staged.whole

    def send(self, server: RemoteServer, version: int, *, seconds: float) -> None:
        """As :meth:`_GpuPublisher.send`."""
        self.publisher.send(self.staged, server, version, seconds)


def own_gpu() -> str:
    """The id of the GPU that this process computes on; the same in every process."""
    import torch

    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)


def _sent(
    weights: Iterable[tuple[str, Tensor]], dtype: str, *, but: Container[str] = ()
) -> tuple[SentTensor, ...]:
    """Floating-point tensors as ``dtype``, ``but`` those of some names."""
    import torch

    wanted = getattr(torch, dtype)
    return tuple(
        SentTensor(name, tensor, wanted if tensor.is_floating_point() and name not in but else tensor.dtype)
        for name, tensor in weights
    )


def _device_of(tensors: tuple[SentTensor, ...]) -> contextlib.AbstractContextManager[object]:
    """The device of these tensors as this thread's: vLLM's side takes the current one."""
    import torch

    device = tensors[0].tensor.device
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


# --- what travels as JSON ------------------------------------------------------------------------------

_BYTES = (7, 11, 13)
"""Of the arguments that rebuild a tensor of another process (``torch.multiprocessing.reductions``), those that are bytes:
the handles of its memory, of its counter and of its event."""
_CLASSES = (0, 4)
_DTYPE = 5


def as_json(update_info: Mapping[str, Any]) -> dict[str, Any]:
    """Write an update of vLLM's trainer side without pickles: its own HTTP client would send one, which an engine runs."""
    handles = update_info.get("ipc_handles")
    if handles is None:
        return dict(update_info)
    return {**update_info, "ipc_handles": {gpu: _handle_out(args) for gpu, args in handles.items()}}


def from_json(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as vLLM's worker side reads it.

    Raises:
        EngineError: a handle is none.
    """
    handles = facts.get("ipc_handles")
    if handles is None:
        return dict(facts)
    try:
        return {**facts, "ipc_handles": {gpu: _handle_in(row) for gpu, row in handles.items()}}
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise EngineError(
            f"The handle of a buffer cannot be read: {error}.", "Publish the weights again."
        ) from error


def _handle_out(args: Iterable[Any]) -> list[Any]:
    row = list(args)
    for place in _BYTES:
        row[place] = base64.b64encode(row[place]).decode()
    for place in _CLASSES:
        row[place] = ""
    row[_DTYPE] = str(row[_DTYPE]).removeprefix("torch.")
    return [list(one) if isinstance(one, tuple) else one for one in row]


def _handle_in(row: list[Any]) -> tuple[Any, ...]:
    """A handle is of a plain buffer of bytes, and of nothing else."""
    import torch

    if len(row) != 15 or row[_DTYPE] != "uint8":
        raise ValueError(f"{len(row)} parts, of {row[_DTYPE]!r}")
    found: list[Any] = [tuple(one) if isinstance(one, list) else one for one in row]
    for place in _BYTES:
        found[place] = base64.b64decode(found[place], validate=True)
    found[0], found[4], found[_DTYPE] = torch.Tensor, torch.storage.TypedStorage, torch.uint8
    return tuple(found)
