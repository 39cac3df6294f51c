"""``turnwise bench sandbox [BACKEND]``: starts, commands, forks, episodes per second, and what stays behind.

An episode starts a sandbox from a repository of 20 files, writes a file, runs five commands (two of them Python),
reads a file and closes: about what a short coding episode asks of a sandbox, without the agent's thinking.
Seconds are of wall time, since what matters is how long an agent waits.
"""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from turnwise.tools.sandbox import cgroups
from turnwise.tools.sandbox.backends.docker import DockerBackend
from turnwise.tools.sandbox.core import Backend, Sandbox, SandboxImage, SandboxLimits
from turnwise.tools.sandbox.pool import Pool
from turnwise.tools.sandbox.registry import get_backend

_CONCURRENCY = (1, 2, 4, 8, 16)
_NAMES = ("process", "bubblewrap", "docker")
_SMALL = SandboxImage.of({f"src/file{n}.py": f"x = {n}\n" * 30 for n in range(20)})
_LARGE = SandboxImage.of({f"src/p{n // 50}/m{n}.py": f"value_{n} = {n}  # text\n" * 160 for n in range(500)})


class SandboxFigure(NamedTuple):
    """The median of several measurements, and the distance between the quartiles (0 for a count)."""

    value: float
    unit: str
    spread: float


def bench_sandboxes(names: Sequence[str] = (), *, episodes: int = 1000) -> dict[str, SandboxFigure]:
    """Measure each backend (all by default). Figures, after the backend's name:

    * ``start``, ``close``, ``exec_true``, ``exec_python``: milliseconds, alone on the machine.
    * ``start_repo``, ``snapshot``, ``restore``, ``fork``: with 500 files of 2 MB, one of them just changed.
    * ``start_warm``: taken from a warm pool.
    * ``episodes_N``: episodes per second with N at once.
    * ``left_behind``: containers, processes, folders, mounts and control groups of this process, and networks, volumes
      and images of the daemon, that are there after 1000 episodes and were not before.
    """
    figures: dict[str, SandboxFigure] = {}
    for name in names or _NAMES:
        backend = get_backend(name, unsafe=True)
        backend.start(_SMALL).close()  # builds or imports the root
        before = occupied(backend)
        found = {**_single(backend), **_files(backend), **_warm(backend)}
        share = episodes // len(_CONCURRENCY)
        for at_once in _CONCURRENCY:
            found[f"episodes_{at_once}"] = _episodes(backend, at_once, share)
        gc.collect()
        left = occupied(backend) - before
        found["left_behind"] = SandboxFigure(len(left), f"after {share * len(_CONCURRENCY)}", 0)
        figures.update({f"{name}_{key}": figure for key, figure in found.items()})
    return figures


def occupied(backend: Backend) -> set[str]:
    """:func:`leftovers`, and the networks, volumes and unnamed images of a daemon, whoever made them."""
    return leftovers(backend) | (backend.resources() if isinstance(backend, DockerBackend) else set())


def leftovers(backend: Backend, owner: int | None = None) -> set[str]:
    """Names of all that the sandboxes of a process (this one) occupy now: what is left after they were closed."""
    pid = owner or os.getpid()
    found = {f"group {path}" for path in cgroups.leftovers() if path.name.split("-")[1] == str(pid)}
    temporary = Path(tempfile.gettempdir())
    found |= {f"folder {path}" for path in temporary.glob(f"turnwise-process-{pid}-*")}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f'"owner": {pid},'.encode() in path.read_bytes():
                found.add(f"process {path.parent.name}")
    mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    found |= {f"mount {line.split()[1]}" for line in mounts if "turnwise-sandbox" in line}
    if isinstance(backend, DockerBackend):
        found |= {f"container {name}" for name in backend.leftovers() if name.startswith(f"turnwise-{pid}-")}
    return found


def _single(backend: Backend) -> dict[str, SandboxFigure]:
    starts: list[float] = []
    closes: list[float] = []
    for _ in range(15):
        since = time.perf_counter()
        sandbox = backend.start(SandboxImage())
        starts.append(time.perf_counter() - since)
        closes.append(_seconds(sandbox.close))
    with backend.start(SandboxImage()) as sandbox:
        true = [_seconds(lambda: sandbox.exec(["true"])) for _ in range(100)]
        python = [_seconds(lambda: sandbox.exec(["python3", "-c", "pass"])) for _ in range(30)]
    times = {"start": starts, "close": closes, "exec_true": true, "exec_python": python}
    return {key: _milliseconds(values) for key, values in times.items()}


def _files(backend: Backend) -> dict[str, SandboxFigure]:
    starts: list[float] = []
    times: dict[str, list[float]] = {"snapshot": [], "restore": [], "fork": []}
    for _ in range(5):
        since = time.perf_counter()
        sandbox = backend.start(_LARGE)
        starts.append(time.perf_counter() - since)
        sandbox.close()
    with backend.start(_LARGE) as sandbox:
        for number in range(7):
            sandbox.write("changed.py", f"x = {number}")
            times["snapshot"].append(_seconds(sandbox.snapshot))
            times["restore"].append(_seconds(lambda: sandbox.restore(sandbox.snapshot())))
            since = time.perf_counter()
            twin = sandbox.fork()
            times["fork"].append(time.perf_counter() - since)
            twin.close()
    return {key: _milliseconds(values) for key, values in {"start_repo": starts, **times}.items()}


def _warm(backend: Backend) -> dict[str, SandboxFigure]:
    pool = Pool(backend, size=8)
    pool.warm(_SMALL.root)
    sandboxes: list[Sandbox] = []
    seconds = [_seconds(lambda: sandboxes.append(pool.start(_SMALL))) for _ in range(8)]
    for sandbox in sandboxes:
        sandbox.close()
    pool.close()
    return {"start_warm": _milliseconds(seconds)}


def _episodes(backend: Backend, at_once: int, count: int) -> SandboxFigure:
    """Episodes per second over the whole, and the spread of four parts of it."""
    rates: list[float] = []
    with ThreadPoolExecutor(at_once) as threads:
        for _ in range(4):
            since = time.perf_counter()
            list(threads.map(lambda _: _episode(backend), range(count // 4)))
            rates.append(count // 4 / (time.perf_counter() - since))
    return SandboxFigure(statistics.median(rates), "episodes/s", max(rates) - min(rates))


def _episode(backend: Backend) -> None:
    with backend.start(_SMALL, SandboxLimits()) as sandbox:
        sandbox.write(
            "test_it.py", "import sys; sys.path.insert(0, 'src'); import file1; assert file1.x == 1"
        )
        for argv in (["ls"], ["cat", "src/file1.py"], ["grep", "-rn", "x = 7", "src"]):
            sandbox.exec(argv)
        for program in ("test_it.py", "src/file3.py"):
            assert sandbox.exec(["python3", program]).ok
        sandbox.read("src/file1.py")


def _seconds(action: Callable[[], object]) -> float:
    since = time.perf_counter()
    action()
    return time.perf_counter() - since


def _milliseconds(seconds: Sequence[float]) -> SandboxFigure:
    quarters = statistics.quantiles(seconds, n=4)
    return SandboxFigure(1000 * statistics.median(seconds), "ms", 1000 * (quarters[2] - quarters[0]))
