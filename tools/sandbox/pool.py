"""A warm pool: empty sandboxes that were started beforehand, so that an episode does not wait for one."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import ClassVar

from turnwise.tools.sandbox.core import Backend, Image, Limits, Root, Sandbox, SandboxError, Status
from turnwise.tools.sandbox.live import LiveSandbox


class Pool(Backend):
    """A back end that keeps up to ``size`` sandboxes of each root and limits ready.

    A sandbox is used once: closing it does not return it, since nothing of one episode may reach another.
    """

    name: ClassVar[str] = "pool"

    def __init__(self, backend: Backend, *, size: int = 2) -> None:
        self._backend, self._size = backend, size
        self._ready: dict[tuple[Root, Limits], deque[LiveSandbox]] = {}
        self._lock = threading.Lock()
        self._filling: set[tuple[Root, Limits]] = set()
        self._closed = False
        self._finish = weakref.finalize(self, _close_all, self._ready)

    def status(self) -> Status:
        return self._backend.status()

    def start(self, image: Image, limits: Limits | None = None) -> Sandbox:
        key = (image.root, limits or Limits())
        while (sandbox := self._take(key)) is not None:
            try:
                sandbox.fill(image)
            except SandboxError:  # it died while it waited
                sandbox.close()
                continue
            break
        if sandbox is None:
            sandbox = self._backend.start(image, key[1])
        self._refill(key)
        if isinstance(sandbox, LiveSandbox):
            sandbox.backend = self
        return sandbox

    def warm(self, root: Root, limits: Limits | None = None) -> None:
        """Fill the pool for this root and these limits, and wait until it is full."""
        key = (root, limits or Limits())
        while self._short_of(key):
            self._add(key)

    def close(self) -> None:
        """Close what waits; later sandboxes are started when they are asked for."""
        self._closed = True
        _close_all(self._ready)

    def _take(self, key: tuple[Root, Limits]) -> LiveSandbox | None:
        with self._lock:
            waiting = self._ready.get(key)
            return waiting.popleft() if waiting else None

    def _short_of(self, key: tuple[Root, Limits]) -> bool:
        return not self._closed and len(self._ready.get(key, ())) < self._size

    def _add(self, key: tuple[Root, Limits]) -> None:
        sandbox = self._backend.start(Image(key[0]), key[1])
        assert isinstance(sandbox, LiveSandbox)
        with self._lock:
            self._ready.setdefault(key, deque()).append(sandbox)
        if self._closed:
            _close_all(self._ready)

    def _refill(self, key: tuple[Root, Limits]) -> None:
        with self._lock:
            if key in self._filling or not self._short_of(key):
                return
            self._filling.add(key)
        threading.Thread(target=self._fill, args=(key,), daemon=True, name="turnwise-pool").start()

    def _fill(self, key: tuple[Root, Limits]) -> None:
        try:
            while self._short_of(key):
                self._add(key)
        except SandboxError:
            pass  # who asks next starts one, and is told
        finally:
            with self._lock:
                self._filling.discard(key)


def _close_all(ready: dict[tuple[Root, Limits], deque[LiveSandbox]]) -> None:
    for waiting in list(ready.values()):
        while waiting:
            waiting.popleft().close()
