"""Weights on their way from the trainer to engines: packed once, fetched by every engine from shared memory or by TCP.

A pack is the bytes of all tensors, an index of them with the SHA-256 of each, and the index's length. An engine reads
a whole pack and compares every digest before it changes anything, so that a transfer that breaks off changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import mmap
import os
import secrets
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnwise.agents.remote.protocol import UpdateInfo
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


def write_pack(path: Path, weights: Iterable[tuple[str, Tensor]], dtype: str) -> str:
    """Write a pack, floating-point tensors as ``dtype``; returns its checksum."""
    import torch

    entries: list[TensorEntry] = []
    with path.open("wb") as file:
        for name, tensor in weights:
            cast = tensor.to(getattr(torch, dtype)) if tensor.is_floating_point() else tensor
            entry, data = entry_of(name, cast)
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
    except (struct.error, ValueError, TypeError, KeyError) as error:
        raise _damaged(f"it cannot be read ({error})") from error
    if checksum_of(entries) != checksum:
        raise _damaged("it is not the one that was announced")
    tensors: list[tuple[str, Tensor]] = []
    start = 0
    for entry in entries:
        part = whole[start : start + entry.size]
        if hashlib.sha256(part).hexdigest() != entry.sha256:
            raise _damaged(f"{entry.name} has changed on the way")
        flat = torch.frombuffer(part, dtype=torch.uint8) if entry.size else torch.empty(0, dtype=torch.uint8)
        tensors.append((entry.name, flat.view(getattr(torch, entry.dtype)).reshape(entry.shape)))
        start += entry.size
    return tensors


def _damaged(why: str) -> EngineError:
    return EngineError(f"The weights that came are not used: {why}.", "Publish them again.")


# --- the trainer's side --------------------------------------------------------------------------------


class Publisher:
    """Keeps the newest pack and hands it out, to engines on this machine as a file in shared memory, to others by TCP.

    Engines that join later, or join again, fetch the same pack.

    Args:
        host: the address on which engines elsewhere find this process.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        sweep()
        self._host = host
        self._folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name_of(os.getpid())}-", dir=shared_memory()))
        self._pack: Path | None = None
        self._packs = 0
        self._key = secrets.token_hex(_KEY_BYTES // 2)
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()

    def pack(self, weights: Iterable[tuple[str, Tensor]], dtype: str) -> str:
        """Make the pack that is handed out from now on; returns its checksum."""
        self._packs += 1
        path = self._folder / f"{PREFIX}{self._packs}.pack"
        checksum = write_pack(path, weights, dtype)
        old, self._pack = self._pack, path
        if old is not None:
            old.unlink()  # who reads it still has it open
        return checksum

    def by_file(self, checksum: str) -> UpdateInfo:
        """Where an engine on this machine finds the pack."""
        return UpdateInfo(path=str(self._pack), checksum=checksum)

    def by_tcp(self, checksum: str) -> UpdateInfo:
        """Where an engine on another machine finds the pack; the key is what lets it in."""
        with self._lock:
            if self._listener is None:
                self._listener = socket.create_server((self._host, 0))
                threading.Thread(target=self._serve, name="turnwise-weights", daemon=True).start()
        host, port = self._listener.getsockname()[:2]
        return UpdateInfo(host=host, port=port, key=self._key, checksum=checksum)

    def close(self) -> None:
        """Hand out nothing any more and free the memory."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        assert self._listener is not None
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._send, args=(end,), name="turnwise-weights", daemon=True).start()

    def _send(self, end: socket.socket) -> None:
        with end, contextlib.suppress(OSError):  # who fetches hears of it by what is missing
            end.settimeout(PATIENCE_S)
            key = _receive(end, bytearray(_KEY_BYTES))
            path = self._pack
            if path is None or not hmac.compare_digest(bytes(key), self._key.encode()):
                return
            with path.open("rb") as file:
                end.sendall(_LENGTH.pack(os.fstat(file.fileno()).st_size))
                end.sendfile(file)


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


def fetch(info: UpdateInfo) -> list[tuple[str, Tensor]]:
    """The tensors of the pack that a trainer announced.

    Raises:
        EngineError: it cannot be fetched, or is not the one that was announced.
    """
    return read_pack(_from_file(info.path) if info.path else _from_tcp(info), info.checksum)


def _from_file(name: str) -> mmap.mmap:
    path = Path(name)
    if not path.name.startswith(PREFIX) or not path.parent.name.startswith(PREFIX):
        raise _damaged(f"{path.name} is none of a trainer's files")
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:
        raise _damaged(f"{path.name} cannot be opened ({error})") from error


def _from_tcp(info: UpdateInfo) -> bytearray:
    try:
        with socket.create_connection((info.host, info.port), PATIENCE_S) as end:
            end.sendall(info.key.encode())
            (length,) = _LENGTH.unpack(_receive(end, bytearray(_LENGTH.size)))
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
