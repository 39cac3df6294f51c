"""Runs a command, feeds and reads it, and kills all that it leaves. Part of the supervisor (see supervisor.py)."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time

from turnwise.tools.sandbox.inside.frames import CHUNK, SETTINGS, answer, end, kill_all, resolve


def run(header: dict, payload: bytes) -> None:
    """Start a command, feed and read it until it ends or must, then kill what is left."""
    started = time.monotonic()
    pipes = [os.pipe() for _ in range(3)]
    os.set_blocking(pipes[0][1], False)
    killed_before = out_of_memory()
    pid = os.fork()
    if pid == 0:
        child(header, pipes)
    (stdin_read, stdin), (stdout, stdout_write), (stderr, stderr_write) = pipes
    for fd in (stdin_read, stdout_write, stderr_write):
        os.close(fd)
    kept = {stdout: Kept(header["output"]), stderr: Kept(header["output"])}
    ended, status = attend(pid, stdin, payload, kept, header, started + header["seconds"])
    seconds = time.monotonic() - started
    out, err = kept[stdout], kept[stderr]
    if ended == "exit" and out_of_memory() > killed_before:
        ended = "memory"
    result = {
        "ended": ended,
        "code": 128 - status if status < 0 else status,
        "parts": [len(out.head), len(out.tail), len(err.head), len(err.tail)],
        "totals": [out.total, err.total],
        "seconds": seconds,
    }
    answer(result, bytes(out.head + out.tail + err.head + err.tail))


class Kept:
    """The first and the last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self.half = max(limit // 2, 1)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.half - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > self.half:
            del self.tail[: len(self.tail) - self.half]


def attend(pid: int, stdin: int, data: bytes, kept: dict, header: dict, deadline: float) -> tuple:
    """Wait for the end of a command; (how it ended, its status as subprocess counts it)."""
    reading, view, ended, status = set(kept), memoryview(data), "exit", None
    watch = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    if not data:
        os.close(stdin)
    while True:
        if status is None and (status := reap(pid)) is not None:
            kill_all(None)  # so that the pipes end
        if status is not None and not reading:
            break
        now = time.monotonic()
        if status is None and now >= deadline:
            ended = "timeout"
        elif sum(stream.total for stream in kept.values()) > header["flood"] and status is None:
            ended = "flood"
        if ended != "exit" and status is None:
            kill_all(pid)
            status = reap(pid, block=True)
            break
        wait = 0.2 if status is not None else min(max(deadline - now, 0), 1 if watch else 0.002)
        waiting_for = [0, *reading, *([watch] if watch and status is None else [])]
        readable, writable, _ = select.select(waiting_for, [stdin] if view else [], [], wait)
        if 0 in readable:
            end()  # the host has nothing to say while a command runs: it is gone
        for fd in reading & set(readable):
            part = os.read(fd, CHUNK)
            kept[fd].add(part)
            if not part:
                reading.discard(fd)
        if status is not None and not readable:
            break  # somebody outside of our reach holds the pipe
        if writable:
            view = feed(stdin, view)
    for fd, stream in kept.items():
        drain(fd, stream)
        os.close(fd)
    for fd in ([stdin] if view else []) + ([watch] if watch else []):
        os.close(fd)
    return ended, status


def feed(stdin: int, view: memoryview) -> memoryview:
    """Write what fits; close at the end, or when nobody reads."""
    try:
        view = view[os.write(stdin, view[:CHUNK]) :]
    except BlockingIOError:
        return view
    except BrokenPipeError:
        view = view[:0]
    if not view:
        os.close(stdin)
    return view


def drain(fd: int, kept: Kept) -> None:
    """Read what the killed left in the pipe."""
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(64):
            part = os.read(fd, CHUNK)
            if not part:
                return
            kept.add(part)


def child(header: dict, pipes: list) -> None:
    """Become the command. Never returns."""
    try:
        os.setsid()
        SETTINGS["prctl"](4, 1, 0, 0, 0)  # dumpable, or /proc/self would not be ours
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
        os.nice(5)  # so that the supervisor gets its turn in a storm
        for fd, pipe in enumerate(pipes):
            os.dup2(pipe[0] if fd == 0 else pipe[1], fd)
        os.closerange(3, 64)
        for name, value in SETTINGS["rlimits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        enter(header["cwd"])
        argv = header["argv"]
        os.execvpe(argv[0], argv, header["env"])
    except FileNotFoundError:
        complain(f"{header['argv'][0]}: not found", 127)
    except BaseException as error:  # noqa: BLE001
        complain(f"{type(error).__name__}: {error}", 126)


def enter(folder: str) -> None:
    try:
        os.chdir(resolve(folder))
    except OSError as error:
        complain(f"{folder[:200]}: {error.strerror}", 126)


def complain(text: str, code: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.write(2, text.encode(errors="replace") + b"\n")
    os._exit(code)


def reap(pid: int, block: bool = False) -> int | None:
    """The command's status if it has ended; adopted orphans are buried on the way."""
    while True:
        try:
            done, status = os.waitpid(pid if block else -1, 0 if block else os.WNOHANG)
        except ChildProcessError:
            return None
        if done == 0:
            return None
        if done == pid:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def out_of_memory() -> int:
    """Count the processes of this sandbox that the kernel has killed for memory so far."""
    if SETTINGS["oom"] < 0:
        return 0
    words = os.pread(SETTINGS["oom"], 4096, 0).split()
    return int(words[words.index(b"oom_kill") + 1]) if b"oom_kill" in words else 0
