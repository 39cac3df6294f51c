"""The process that a fault happens in: ``python -m faulting.child MODULE …`` imports once and forks a process for each order.

An order is a line of JSON on stdin: the command line of ``turnwise``, the environment, files for stdout and stderr. The
answers are the new process's number, and once it has ended its exit status. The new process carries out the plan
(FAULTS_PLAN) on itself: it is killed at a moment of the plan, its disk is full, slow or forgetful, its clock jumps.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PHASES = {
    "collect": "rollout",
    "update_policy": "learning",
    "_save": "checkpoint",
    "save_checkpoint": "checkpoint",
    "_validate": "evaluation",
    "_judge": "evaluation",
    "write_report": "report",
    "to_parquet": "report",
    "warm_start": "warm start",
    "make_ready": "preflight",
    "open_session": "start",
    "rollout": "episodes",
    "evaluate_async": "episodes",
    "open_folder": "opening",
    "open_run": "opening",
    "write": "summary",
}
_ORDER = (
    "checkpoint",
    "learning",
    "rollout",
    "evaluation",
    "report",
    "summary",
    "preflight",
    "warm start",
    "start",
    "opening",
    "episodes",
)


def serve() -> dict[str, Any]:
    """Wait for orders; returns one in each forked process."""
    for line in sys.stdin:
        order = json.loads(line)
        number = os.fork()
        if number == 0:
            return order
        print(json.dumps({"pid": number}), flush=True)
        print(json.dumps({"status": os.waitpid(number, 0)[1]}), flush=True)
    os._exit(0)


def become(order: dict[str, Any]) -> list[str]:
    """Turn this process into the one that was ordered; its command line."""
    os.setsid()
    for number, path in ((0, os.devnull), (1, order["stdout"]), (2, order["stderr"])):
        file = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_APPEND if number else 0), 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.update(order["env"])
    return order["command"]


# --- its plan ----------------------------------------------------------------------------------------


class Moments:
    """Carries out ``do`` at a moment of the plan: after so many seconds, in a step, or in an event of the disk."""

    def __init__(self, at: dict[str, float], do: Callable[[], None]) -> None:
        self.at, self.do, self.counts = at, do, {"step": 0, "disk": 0}
        if "seconds" in at:
            timer = threading.Timer(at["seconds"], do)
            timer.daemon = True
            timer.start()

    def tell(self, kind: str) -> None:
        """One more step or event."""
        self.counts[kind] += 1
        if self.at.get(kind) == self.counts[kind]:
            self.do()


def install(plan: dict[str, Any]) -> None:
    """Let the plan come true in this process."""
    from faulting import worlds

    if "limits" in plan:
        from turnwise.agents.rollout import Limits

        Limits.__new__.__defaults__ = (
            plan["limits"]["reset_s"],
            *Limits.__new__.__defaults__[1:],
        )  # no option sets it
    events: list[Callable[[str, str], None]] = []
    if kill := plan.get("kill"):
        moments = Moments(kill["at"], lambda: _kill(kill, plan))
        worlds.MOMENTS.append(lambda: moments.tell("step"))
        events.append(lambda what, path: moments.tell("disk"))
    if disk := plan.get("disk"):
        events.append(_Disk(disk).event)
    if "size_limit" in plan:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan["size_limit"], resource.RLIM_INFINITY))
    if "engine" in plan:
        _lie(plan["engine"], Path(plan["hazard"]["marks"]))
    if "clock" in plan:
        _jump(plan["clock"])
    synced = None
    if "journal" in plan:
        from faulting.power import Journal

        synced = Journal(Path(plan["out"]), Path(plan["journal"])).synced
    _watch_disk(plan["out"], events, synced)


class _Disk:
    """A disk that fails or is slow, from one event on."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan, self.seen = plan, 0

    def event(self, what: str, path: str) -> None:
        self.seen += 1
        if what == "fsync" and "slow" in self.plan:
            time.sleep(self.plan["slow"])
        first = self.plan.get("from", 0)
        if first and first <= self.seen < first + self.plan["events"]:
            number = self.plan["errno"]
            raise OSError(number, os.strerror(number), path)


def _watch_disk(
    out: str, events: list[Callable[[str, str], None]], synced: Callable[[int], None] | None
) -> None:
    """Tell of everything that is written in the run's folder, before it is."""
    fsync, busy = os.fsync, threading.local()

    def tell(what: str, path: str) -> None:
        if getattr(busy, "now", False) or not path.startswith(out):
            return
        busy.now = True
        try:
            for event in events:
                event(what, path)
        finally:
            busy.now = False

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                tell("open", os.fspath(args[0]) if isinstance(args[0], (str, os.PathLike)) else "")
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate"):
            path = args[1] if event == "os.symlink" else args[0]
            tell(event, os.fspath(path) if isinstance(path, (str, os.PathLike)) else "")

    def fsync_and_tell(file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        tell("fsync", os.readlink(f"/proc/self/fd/{number}"))
        fsync(number)
        if synced is not None:
            synced(number)

    os.fsync = fsync_and_tell
    if events:
        sys.addaudithook(audit)


def _kill(kill: dict[str, Any], plan: dict[str, Any]) -> None:
    """Note where the process stands, and send it the signal."""
    thread = threading.main_thread().ident or 0
    Path(plan["place"]).write_text(_phase(sys._current_frames().get(thread)))
    os.kill(os.getpid(), kill["signal"])


def _phase(frame: FrameType | None) -> str:
    """By the functions that are being called, and those that wait in coroutines."""
    found = set[str]()
    while frame is not None:
        found.add(PHASES.get(frame.f_code.co_name, ""))
        frame = frame.f_back
    for task in list(asyncio.tasks._all_tasks):
        waits: Any = None if task.done() else task.get_coro()
        while hasattr(waits, "cr_code"):
            found.add(PHASES.get(waits.cr_code.co_name, ""))
            waits = waits.cr_await
    return next((phase for phase in _ORDER if phase in found), "elsewhere")


def _lie(plan: dict[str, Any], marks: Path) -> None:
    """One answer of the engine is none that anybody can have sampled."""
    from turnwise.agents.engines.torch import TorchEngine

    real, seen = TorchEngine.generate, [0]

    async def generate(self: TorchEngine, *given: Any, **named: Any) -> Any:
        done = await real(self, *given, **named)
        seen[0] += 1
        if seen[0] != plan["at"]:
            return done
        (marks / "engine").touch()
        ids, logps, first = list(done.token_ids), list(done.logprobs), done.token_ids[0]
        match plan["lie"].split():
            case [("OverflowError" | "MemoryError") as name]:
                raise {"OverflowError": OverflowError, "MemoryError": MemoryError}[name]("a lie")
            case ["token", number]:
                ids[-1] = int(number.replace("10**12", "1000000000000"))
            case ["a", "stop", *_]:
                ids, logps = [*named["stop_ids"], first], [-0.5] * (len(named["stop_ids"]) + 1)
            case ["half", *_]:
                logps = logps[: len(logps) // 2]
            case [number]:
                logps[-1] = float(number)
        return done._replace(token_ids=tuple(ids), logprobs=tuple(logps))

    TorchEngine.generate = generate


def _jump(clock: dict[str, Any]) -> None:
    """The wall clock jumps by hours or years, forwards and back, every so many calls; deadlines must not see it."""
    real, real_ns, calls = time.time, time.time_ns, [0]

    def offset() -> float:
        calls[0] += 1
        return clock["jumps"][calls[0] // clock["every"] % len(clock["jumps"])]

    time.time = lambda: real() + offset()
    time.time_ns = lambda: real_ns() + int(offset() * 1e9)


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    command = become(serve())
    from faulting import worlds

    install(worlds.plan())
    worlds.register_worlds()
    from turnwise.cli.app import run

    sys.exit(run(command))
