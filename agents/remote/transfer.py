"""Weights on their way from the trainer to engines: packed once, fetched by every engine from shared memory or by TCP.

A pack is the bytes of all tensors, an index of them with the SHA-256 of each, and the index's length. An engine reads
a whole pack and compares every digest before it changes anything, so that a transfer that breaks off changes nothing.
Where adapters are trained, there is a pack of the weights without them, which an engine fetches once, and a pack of adapters
for each version.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import itertools
import json
import mmap
import os
import secrets
import shutil
import socket
import struct
import tempfile
import threading
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnwise.agents.remote.adapters import AdaptedWeights, adapter_tensors, merged, read_adapters
from turnwise.agents.remote.client import RemoteServer
from turnwise.agents.remote.protocol import FinishBody, PackInfo, UpdateBody, UpdateInfo, whole_checksum
from turnwise.errors import EngineError
from turnwise.tools.owner import lives, name_of

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = "turnwise-weights-"
_LENGTH = struct.Struct("<Q")
_KEY_BYTES = 64  # of a pack's key, as text
_CHUNK = 1 << 22
PATIENCE_S = 60.0
"""Without a byte for so long, a transfer has broken off."""


PROVE_S, MOST_UNPROVEN = 10.0, 32
"""So long a caller may take to say the key of a pack, and so many may be about to."""


class TensorEntry(NamedTuple):
    """A tensor of a pack."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int  # in bytes
    sha256: str


def checksum_of(entries: Iterable[TensorEntry]) -> str:
    """The checksum of weights: of all names, types, shapes and digests, whatever their order."""
    listed = sorted((e.name, e.dtype, list(e.shape), e.sha256) for e in entries)
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def entry_of(name: str, tensor: Tensor) -> tuple[TensorEntry, memoryview]:
    """A tensor's entry, and its bytes."""
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    array: Any = flat.numpy()
    data = memoryview(array)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorEntry(name, dtype, tuple(tensor.shape), data.nbytes, hashlib.sha256(data).hexdigest()), data


def write_pack(path: Path, weights: Iterable[tuple[str, Tensor]]) -> str:
    """Write a pack; returns its checksum."""
    entries: list[TensorEntry] = []
    with path.open("wb") as file:
        for name, tensor in weights:
            entry, data = entry_of(name, tensor)
            file.write(data)
            entries.append(entry)
        index = json.dumps([entry._asdict() for entry in entries]).encode()
        file.write(index)
        file.write(_LENGTH.pack(len(index)))
    return checksum_of(entries)


def read_pack(data: Any, checksum: str) -> list[tuple[str, Tensor]]:
    """The tensors of a pack, which lie in ``data`` (a writable buffer), once every digest has been compared.

    Raises:
        EngineError: it is no pack, it is damaged, or it is another one.
    """
    import torch

    whole = memoryview(data)
    try:
        (length,) = _LENGTH.unpack(whole[-_LENGTH.size :])
        listed = json.loads(bytes(whole[-_LENGTH.size - length : -_LENGTH.size]))
        entries = [TensorEntry(**{**row, "shape": tuple(row["shape"])}) for row in listed]
        sizes = sum(entry.size for entry in entries)
        if sizes + length + _LENGTH.size != len(whole):
            raise ValueError(f"{len(whole)} bytes where the index has {sizes}")
        found = checksum_of(entries)
    except (struct.error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(f"it cannot be read ({error!s:.200})") from error
    if found != checksum:
        raise _damaged("it is not the one that was announced")
    tensors: list[tuple[str, Tensor]] = []
    start = 0
    for entry in entries:
        part = whole[start : start + entry.size]
        if hashlib.sha256(part).hexdigest() != entry.sha256:
            raise _damaged(f"{entry.name} has changed on the way")
        flat = torch.frombuffer(part, dtype=torch.uint8) if entry.size else torch.empty(0, dtype=torch.uint8)
        try:
            tensors.append((entry.name, flat.view(getattr(torch, entry.dtype)).reshape(entry.shape)))
        except (AttributeError, TypeError, RuntimeError) as error:
            raise _damaged(
                f"{entry.name!r:.80} is no tensor of its type and shape ({error!s:.100})"
            ) from error
        start += entry.size
    return tensors


def _damaged(why: str) -> EngineError:
    return EngineError(f"The weights that came are not used: {why}.", "Publish them again.")


def save_in_memory(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors for an engine's own processes, as safetensors in a folder of :func:`shared_memory`.

    Raises:
        EngineError: it has no room for them.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(dict(tensors), path)
    except (SafetensorError, OSError) as error:
        raise _no_room(path.parent, error) from error


def _no_room(folder: Path, error: Exception) -> EngineError:
    free = shutil.disk_usage(folder).free / 1e6
    why = getattr(error, "strerror", None) or error
    return EngineError(
        f"New weights cannot be packed in {folder.parent}: {why} ({free:.1f} MB are free). Engines keep "
        "those that they have.",
        "An update takes the room of the weights twice, in the engines' type: give the memory more (as root `mount -o "
        "remount,size=8G /dev/shm`, a container `--shm-size 8g`), or remove what others left there; then --resume.",
    )


# --- the trainer's side --------------------------------------------------------------------------------


class Pack(NamedTuple):
    """A pack that is handed out; ``key`` lets in who fetches it by TCP, ``size`` is in bytes."""

    path: Path
    checksum: str
    key: str
    size: int


class BaseStamp:
    """Tells whether a base is still what it was when it was packed. It does not keep the model alive."""

    def __init__(self, weights: AdaptedWeights) -> None:
        self._owner = weakref.ref(weights.owner)
        self._places = _places(weights)

    def holds(self, weights: AdaptedWeights) -> bool:
        """Say whether these are the same tensors of the same model, unchanged."""
        return self._owner() is weights.owner and _places(weights) == self._places


def _places(weights: AdaptedWeights) -> dict[str, tuple[object, ...]]:
    """Return the place of each tensor of the base, and the number of times that it was written to."""
    return {name: (t.data_ptr(), t.shape, t.dtype, t._version) for name, t in weights.base.items()}


class Offer(NamedTuple):
    """Weights that engines are to have: whole, or adapters and the base that they are added to."""

    pack: Pack
    base: Pack | None = None
    stamp: BaseStamp | None = None

    @property
    def whole(self) -> str:
        """The checksum of the weights that an engine then has."""
        return whole_checksum(self.pack.checksum, self.base.checksum if self.base else None)

    @property
    def packs(self) -> set[Pack]:
        return {self.pack, *([self.base] if self.base else [])}


class PackDelivery(NamedTuple):
    """Packs that one engine is told to fetch."""

    info: UpdateInfo

    @property
    def whole(self) -> str:
        return self.info.whole

    def send(self, server: RemoteServer, version: int, *, seconds: float) -> None:
        """Have the engine fetch and load them.

        Raises:
            Unreachable: it does not answer.
            EngineError: it does not take them.
        """
        server.call("POST", "/start_weight_update")
        update = UpdateBody(update_info=self.info).model_dump()
        server.call("POST", "/update_weights", update, seconds=seconds)
        finish = FinishBody(weight_version=str(version)).model_dump()
        server.call("POST", "/finish_weight_update", finish, seconds=seconds)


class Publisher:
    """Keeps the newest packs and hands them out, to engines on this machine as files in shared memory, to others by TCP.

    Engines that join later, or join again, fetch the same packs.

    Args:
        host: the address on which engines elsewhere find this process.

    Attributes:
        written: bytes that were packed so far.
    """

    most_learners = 64

    def __init__(self, host: str = "127.0.0.1") -> None:
        sweep()
        self.written = 0
        self._host = host
        self._folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name_of(os.getpid())}-", dir=shared_memory()))
        self._offered: Offer | None = None
        self._before: Offer | None = None
        self._packs: dict[str, Pack] = {}  # by their keys
        self._numbers = itertools.count(1)
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()
        self._unproven = threading.Semaphore(MOST_UNPROVEN)

    @classmethod
    def check(cls) -> None:
        """Packs need nothing that is not everywhere."""

    def offer(self, weights: Iterable[tuple[str, Tensor]], dtype: str) -> Offer:
        """Pack whole weights, floating-point tensors as ``dtype``, to be handed out from now on.

        Raises:
            EngineError: there is no room for them; what was handed out before still is.
        """
        return self._newest(Offer(self._write(_cast(weights, dtype))))

    def offer_adapters(self, weights: AdaptedWeights, dtype: str) -> Offer:
        """Pack adapters, to be handed out from now on, and their base where it is not the one that is handed out already.

        Weights that have adapters stay in their own type, so that nothing is rounded before the two are added.

        Raises:
            EngineError: there is no room for them; what was handed out before still is.
        """
        before = self._offered
        if before is not None and before.base and before.stamp and before.stamp.holds(weights):
            base, stamp = before.base, before.stamp
        else:
            base = self._write(_cast(weights.base.items(), dtype, but=weights.adapters))
            stamp = BaseStamp(weights)
        return self._newest(Offer(self._write(adapter_tensors(weights.adapters)), base, stamp))

    def settle(self) -> None:
        """The newest offer is in use: what it does without goes."""
        self._before = None
        self._keep(self._offered)

    def withdraw(self) -> None:
        """Nobody took the newest offer: the one before it holds again."""
        self._offered, self._before = self._before, None
        self._keep(self._offered)

    def delivery(self, offer: Offer, server: RemoteServer) -> PackDelivery:
        """Return the delivery of an offer to an engine: by file to one that sees this process's shared memory, else by TCP.

        Raises:
            EngineError: this process cannot listen where the engine is to fetch it.
        """
        assert server.facts is not None
        here = bool(server.facts.local) and server.facts.local == locality()
        return PackDelivery(self.by_file(offer) if here else self.by_tcp(offer))

    def by_file(self, offer: Offer) -> UpdateInfo:
        """Return the place at which an engine on this machine finds what is offered."""
        return _info(offer, lambda pack: PackInfo(path=str(pack.path), checksum=pack.checksum))

    def by_tcp(self, offer: Offer) -> UpdateInfo:
        """Return the place at which an engine on another machine finds what is offered; the keys are what lets it in.

        Raises:
            EngineError: this process cannot listen there.
        """
        with self._lock:
            if self._listener is None:
                self._listener = _listening(self._host)
                threading.Thread(target=self._serve, name="turnwise-weights", daemon=True).start()
        host, port = self._listener.getsockname()[:2]
        return _info(offer, lambda pack: PackInfo(host=host, port=port, key=pack.key, checksum=pack.checksum))

    def close(self) -> None:
        """Hand out nothing any more and free the memory."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, tensors: Iterable[tuple[str, Tensor]]) -> Pack:
        path = self._folder / f"{PREFIX}{next(self._numbers)}.pack"
        try:
            checksum, key = write_pack(path, tensors), secrets.token_hex(_KEY_BYTES // 2)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise _no_room(path.parent, error) from error
        pack = self._packs[key] = Pack(path, checksum, key, path.stat().st_size)
        self.written += pack.size
        return pack

    def _newest(self, offer: Offer) -> Offer:
        self._before, self._offered = self._offered, offer
        return offer

    def _keep(self, offer: Offer | None) -> None:
        """Forget all packs but those of this offer; who reads one still has it open."""
        kept = offer.packs if offer else set[Pack]()
        for pack in [pack for pack in self._packs.values() if pack not in kept]:
            del self._packs[pack.key]
            pack.path.unlink()

    def _serve(self) -> None:
        assert self._listener is not None
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._unproven.acquire()
            threading.Thread(target=self._send, args=(end,), name="turnwise-weights", daemon=True).start()

    def _send(self, end: socket.socket) -> None:
        with end, contextlib.suppress(OSError):  # who fetches hears of it by what is missing
            try:
                end.settimeout(PROVE_S)
                key = _receive(end, bytearray(_KEY_BYTES))
            finally:
                self._unproven.release()
            end.settimeout(PATIENCE_S)
            packs = list(self._packs.values())
            pack = next((one for one in packs if hmac.compare_digest(bytes(key), one.key.encode())), None)
            if pack is None:
                return
            with pack.path.open("rb") as file:
                end.sendall(_LENGTH.pack(os.fstat(file.fileno()).st_size))
                end.sendfile(file)


def _listening(host: str) -> socket.socket:
    try:
        return socket.create_server((host, 0))
    except (OSError, ValueError) as error:  # a name with an empty part is the latter
        raise EngineError(
            f"Engines on other machines fetch weights from {host}, and this process cannot listen there: {error}.",
            "Set engine.options.publish_host to an address of this machine, as they reach it.",
        ) from error


def _cast(
    weights: Iterable[tuple[str, Tensor]], dtype: str, *, but: Container[str] = ()
) -> Iterator[tuple[str, Tensor]]:
    """Floating-point tensors as ``dtype``, ``but`` those of some names."""
    import torch

    for name, tensor in weights:
        changes = tensor.is_floating_point() and name not in but
        yield name, tensor.to(getattr(torch, dtype)) if changes else tensor


def _info(offer: Offer, where: Callable[[Pack], PackInfo]) -> UpdateInfo:
    base = where(offer.base) if offer.base else None
    return UpdateInfo(**where(offer.pack).model_dump(), base=base)


def shared_memory() -> str | None:
    """The folder that is memory; None where there is none, for the temporary folder."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def sweep() -> None:
    """Remove the packs of processes that are dead."""
    for folder in Path(shared_memory() or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).rpartition("-")[0]
        if owner and not lives(owner):
            shutil.rmtree(folder, ignore_errors=True)


def locality() -> str:
    """Names this machine and its shared memory: two processes that agree on it see the same files there."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        found = os.stat(shared_memory() or tempfile.gettempdir())
        return f"{boot}:{found.st_dev}:{found.st_ino}"
    return ""


# --- the engine's side ---------------------------------------------------------------------------------


class WeightStore:
    """Fetches what a trainer announces, and keeps the base that adapters are added to: the next ones are of the same.

    Args:
        most: bytes that a pack may have; as many as this machine has memory unless given.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._base: dict[str, Tensor] = {}
        self._checksum = ""

    def fetch(self, info: UpdateInfo) -> Iterator[tuple[str, Tensor]]:
        """All weights, under the names of a checkpoint; everything has been fetched and compared when this returns.

        Raises:
            EngineError: a pack cannot be fetched, or is not the one that was announced.
        """
        if info.base is None:
            self._base, self._checksum = {}, ""
            return iter(fetch(info, self._most))
        if self._checksum != info.base.checksum:
            self._base, self._checksum = {}, ""  # two are not held at a time
            self._base = dict(fetch(info.base, self._most))
            self._checksum = info.base.checksum
        return merged(self._base, read_adapters(self._base, fetch(info, self._most)))


def fetch(info: PackInfo, most: int) -> list[tuple[str, Tensor]]:
    """The tensors of the pack that a trainer announced.

    Raises:
        EngineError: it cannot be fetched, has more than ``most`` bytes, or is not the one that was announced.
    """
    return read_pack(_from_file(info.path) if info.path else _from_tcp(info, most), info.checksum)


def _from_file(name: str) -> mmap.mmap:
    path = Path(name)
    if not path.name.startswith(PREFIX) or not path.parent.name.startswith(PREFIX):
        raise _damaged(f"{path.name} is none of a trainer's files")
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:
        raise _damaged(f"{path.name} cannot be opened ({error})") from error


def _from_tcp(info: PackInfo, most: int) -> bytearray:
    try:
        with socket.create_connection((info.host, info.port), PATIENCE_S) as end:
            end.sendall(info.key.encode())
            (length,) = _LENGTH.unpack(_receive(end, bytearray(_LENGTH.size)))
            if length > most:
                raise _damaged(f"{length} bytes are announced, and weights of this model have at most {most}")
            return _receive(end, bytearray(length))
    except OSError as error:
        raise _damaged(f"the transfer from {info.host}:{info.port} broke off ({error})") from error


def _receive(end: socket.socket, into: bytearray) -> bytearray:
    """Fill ``into``."""
    for part in _parts(memoryview(into)):
        while part:
            count = end.recv_into(part)
            if not count:
                raise ConnectionError("the other side has hung up")
            part = part[count:]
    return into


def _parts(whole: memoryview) -> Iterator[memoryview]:
    return (whole[start : start + _CHUNK] for start in range(0, len(whole), _CHUNK))
