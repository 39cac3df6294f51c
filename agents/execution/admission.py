"""Admission: limits the episodes in flight while memory, cores, files or the KV cache are short.

Pressure is measured, not guessed from settings. It only delays episodes that have not begun: those in flight go on, and
their leaving is what relieves it. A few are always let in, so that a machine which others keep busy still gets on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.core import Policy
from turnwise.agents.multi_agent import PolicyMap
from turnwise.open_files import OpenFiles, open_files, raise_open_files

LEAST_FREE = 0.05
"""Share of memory that stays free."""
MOST_RUNNABLE = 16.0
"""Threads that want a core, for each core, above which no further blocking environment starts."""
MOST_CACHED = 0.95
"""Share of an engine's KV cache in use, above which it would begin to throw prompts out again."""
MOST_OPEN = 0.8
"""Share of the files that this process may have open, sockets and pipes among them."""
FILES_EACH = 4
"""Files that an episode is taken to open which has begun since the last look."""
LOOK_S = 0.25
SMOOTHING = 0.1
"""Weight of a new look at what is runnable, which jumps: sustained pressure counts, for some 2.5 seconds."""

_logger = logging.getLogger(__name__)


class Pressure(NamedTuple):
    """Use of memory, cores, KV cache and files."""

    free: float = 1.0  # share of memory, of the machine's or of this control group's
    runnable: float = 0.0  # threads that want a core, for each core
    cached: float = 0.0  # share of the fullest engine's KV cache
    files: OpenFiles = OpenFiles()

    def shortage(self, *, blocking: bool, begun: int = 0) -> str:
        """Name what is in short supply, in words; empty if nothing is. ``begun``: episodes since this was measured."""
        if self.free < LEAST_FREE:
            return f"{self.free:.0%} of memory is free"
        if self.cached > MOST_CACHED:
            return f"{self.cached:.0%} of the KV cache is in use"
        if blocking and self.runnable > MOST_RUNNABLE:
            return f"{self.runnable:.0f} threads want each core"
        if self.files.most and self.files.open + FILES_EACH * begun > MOST_OPEN * self.files.most:
            return f"of the {self.files.most} files that may be open (ulimit -n) {self.files.open} are"
        return ""


class Admission:
    """Lets episodes begin.

    Args:
        concurrency: episodes in flight at most.
        policy: whose engines' caches are looked at.
        measure: reads the pressure.
    """

    def __init__(
        self, concurrency: int, policy: PolicyMap, measure: Callable[[PolicyMap], Pressure] | None = None
    ) -> None:
        self._gate = asyncio.Semaphore(concurrency)
        self._policy, self._measure = policy, measure or measured
        self._flying = self._begun = 0
        raise_open_files()
        self._looked, self._pressure = 0.0, Pressure()
        self._told = False

    @asynccontextmanager
    async def place(self, *, blocking: bool) -> AsyncIterator[None]:
        """A place for one episode, for as long as it takes."""
        async with self._gate:
            least = 2 * cores() if blocking else 1
            while self._flying >= least and (
                short := self._look().shortage(blocking=blocking, begun=self._begun)
            ):
                if not self._told:
                    _logger.warning("episodes wait: %s; %d are in flight", short, self._flying)
                    self._told = True
                await asyncio.sleep(LOOK_S)
            self._flying += 1
            self._begun += 1
            try:
                yield
            finally:
                self._flying -= 1

    def _look(self) -> Pressure:
        if (now := time.monotonic()) - self._looked > LOOK_S:
            found = self._measure(self._policy)
            runnable = SMOOTHING * found.runnable + (1 - SMOOTHING) * self._pressure.runnable
            self._looked, self._pressure, self._begun = now, found._replace(runnable=runnable), 0
        return self._pressure


def measured(policy: PolicyMap) -> Pressure:
    """The pressure now."""
    cached = max(map(_cached, _policies(policy)), default=0.0)
    return Pressure(_free_memory(), _runnable() / cores(), cached, open_files())


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _policies(policy: PolicyMap) -> list[Policy]:
    return list(policy.values()) if isinstance(policy, Mapping) else [policy]


def _cached(policy: Policy) -> float:
    return float(getattr(getattr(policy, "engine", None), "cache_use", 0.0))


def _free_memory() -> float:
    import psutil

    memory = psutil.virtual_memory()
    free = memory.available / memory.total
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    if limit and used is not None:
        free = min(free, max(0.0, 1 - (used - _reclaimable()) / limit))
    return free


def _reclaimable() -> float:
    """Bytes of file cache, which a control group counts as used though it gives them up when asked."""
    try:
        lines = Path("/sys/fs/cgroup/memory.stat").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(
        float(line.split()[1]) for line in lines if line.startswith(("inactive_file ", "active_file "))
    )


def _number(path: str) -> float | None:
    try:
        return float(Path(path).read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return None


def _runnable() -> float:
    """Threads that run or want to, on the whole machine; 0 where the system does not say."""
    try:
        return float(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 0.0
