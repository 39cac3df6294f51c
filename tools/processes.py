"""Environment of the processes of this machine: where Python finds modules, and which GPU is a process's own."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable


def module_path() -> str:
    """Return the folders in which Python finds modules here, as PYTHONPATH of a process that is started."""
    return os.pathsep.join(item for item in sys.path if item)


def gpu_names(count: int) -> list[str]:
    """The ``count`` CUDA devices that this process sees, as CUDA_VISIBLE_DEVICES names them to another process."""
    listed = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return listed[:count] or [str(number) for number in range(count)]  # CUDA stops at the first that is none


def at_once(calls: Iterable[Callable[[], object]]) -> None:
    """Make all calls, each in a thread, and wait for them."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
