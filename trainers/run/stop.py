"""Ctrl-C: the first lets the work in hand finish, the second stops at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import Any, Self


class Stop:
    """Listens for SIGINT and SIGTERM while it is entered (in the main thread; elsewhere it does nothing).

    Attributes:
        asked: whether one of them came. A second one raises KeyboardInterrupt.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self.asked = False
        self._log = log
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, _: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        with contextlib.suppress(RuntimeError):  # the signal came while something else was being printed
            self._log("stopping as soon as this update is done and saved (again: at once)")
