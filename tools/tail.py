"""The tail of another program's output: a pipe that is always read and of which little is kept."""

from __future__ import annotations

import os
import select
import threading
import time

_KEPT = 2000  # bytes
_PIECE = 1 << 16
_AT_ONCE = 16  # pieces; then whoever writes more waits a moment
_PAUSE = 0.05


class Tail:
    """Give ``file`` to a program as its stderr, ask for :meth:`text`, and :meth:`close` it when the program has ended."""

    def __init__(self) -> None:
        self._pipe, write = os.pipe()
        os.set_blocking(self._pipe, False)
        self.file = os.fdopen(write, "w", encoding="utf-8")
        self._last, self._open = b"", True
        self._lock = threading.Lock()
        threading.Thread(target=self._follow, name="turnwise-tail", daemon=True).start()

    def text(self) -> str:
        """The last of what was written so far."""
        self._take()
        return self._last.decode("utf-8", "replace")

    def close(self) -> None:
        """Close our end; the rest is read until the program's is closed too."""
        self.file.close()

    def _take(self) -> bool:
        """Read what there is; whether more may come."""
        with self._lock:
            for _ in range(_AT_ONCE if self._open else 0):
                try:
                    piece = os.read(self._pipe, _PIECE)
                except BlockingIOError:
                    return True
                if not piece:
                    os.close(self._pipe)
                    self._open = False
                    break
                self._last = (self._last + piece)[-_KEPT:]
            return self._open

    def _follow(self) -> None:
        there = select.poll()  # not select(), which knows no descriptor above 1,023
        there.register(self._pipe, select.POLLIN)
        while True:
            there.poll()
            if not self._take():
                return
            time.sleep(_PAUSE)
