"""A warm pool: empty sandboxes that were started beforehand, so that an episode does not wait for one."""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter, deque
from typing import ClassVar, TypeAlias

import psutil

from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.core import (
    MIB,
    Backend,
    Root,
    Sandbox,
    SandboxError,
    SandboxImage,
    SandboxLimits,
    Status,
)
from turnwise.tools.sandbox.live import LiveSandbox

Key: TypeAlias = tuple[Root, SandboxLimits]
_SPARE = 1024 * MIB  # of the machine's memory that stays free of sandboxes that only wait


class Pool(Backend):
    """A backend that keeps sandboxes of each root and limits ready, as many as were missed, at most ``size``.

    Whoever finds none waiting starts one and raises by one how many are kept; a thread starts them in the background,
    and none where memory is short. One that died while it waited is found out before it is handed over. A sandbox
    is used once: closing it does not return it, since nothing of one episode may reach another. What waits is
    closed with the pool, and when the interpreter ends; a forked child begins with an empty pool.
    """

    name: ClassVar[str] = "pool"

    def __init__(self, backend: Backend, *, size: int = 16) -> None:
        self._backend, self._size = backend, size
        self._ready: dict[Key, deque[LiveSandbox]] = {}
        self._wanted: Counter[Key] = Counter()
        self._lock = threading.Lock()
        self._filling: set[Key] = set()
        self._closed = False
        self._pid = os.getpid()
        self._parents: list[dict[Key, deque[LiveSandbox]]] = []  # kept, for forgetting one would end it
        self._finish = weakref.finalize(self, _close_all, self._ready, self._pid)

    def status(self) -> Status:
        return self._backend.status()

    def start(self, image: SandboxImage, limits: SandboxLimits | None = None) -> Sandbox:
        self._begin_anew_after_fork()
        key = (image.root, limits or SandboxLimits())
        while (sandbox := self._take(key)) is not None:
            try:
                sandbox.fill(image)
            except SandboxError:  # it died while it waited
                sandbox.close()
                continue
            break
        if sandbox is None:
            with self._lock:
                self._wanted[key] = min(self._wanted[key] + 1, self._size)
            sandbox = self._backend.start(image, key[1])
        self._refill(key)
        if isinstance(sandbox, LiveSandbox):
            sandbox.backend = self
        return sandbox

    def warm(self, root: Root, limits: SandboxLimits | None = None) -> None:
        """Fill the pool for this root and these limits, and wait until it is full."""
        key = (root, limits or SandboxLimits())
        self._wanted[key] = self._size
        while self._short_of(key):
            self._add(key)

    def waiting(self) -> int:
        """The number of sandboxes that wait to be used."""
        return sum(map(len, self._ready.values()))

    def close(self) -> None:
        """Close what waits; later sandboxes are started when they are asked for."""
        self._closed = True
        _close_all(self._ready, self._pid)

    def _begin_anew_after_fork(self) -> None:
        with self._lock:
            if self._pid == os.getpid():
                return
            self._pid = os.getpid()
            self._parents.append(self._ready)
            self._ready, self._filling = {}, set()
            self._finish.detach()
            self._finish = weakref.finalize(self, _close_all, self._ready, self._pid)

    def _take(self, key: Key) -> LiveSandbox | None:
        with self._lock:
            waiting = self._ready.get(key)
            return waiting.popleft() if waiting else None

    def _short_of(self, key: Key) -> bool:
        if self._closed or len(self._ready.get(key, ())) >= self._wanted[key]:
            return False
        return psutil.virtual_memory().available > _SPARE

    def _add(self, key: Key) -> None:
        sandbox = self._backend.start(SandboxImage(key[0]), key[1])
        assert isinstance(sandbox, LiveSandbox)
        with self._lock:
            self._ready.setdefault(key, deque()).append(sandbox)
        if self._closed:
            _close_all(self._ready, self._pid)

    def _refill(self, key: Key) -> None:
        with self._lock:
            if key in self._filling or not self._short_of(key):
                return
            self._filling.add(key)
        threading.Thread(target=self._fill, args=(key,), daemon=True, name="turnwise-pool").start()

    def _fill(self, key: Key) -> None:
        try:
            while self._short_of(key):
                self._add(key)
        except (TurnwiseError, OSError):
            pass  # who asks next starts one, and is informed
        finally:
            with self._lock:
                self._filling.discard(key)


def _close_all(ready: dict[Key, deque[LiveSandbox]], pid: int) -> None:
    if pid != os.getpid():
        return  # they are the parent's
    for waiting in list(ready.values()):
        while waiting:
            waiting.popleft().close()
