"""A host of worker processes: `turnwise serve-workers`, which runs on other machines reach over TCP.

Each connection is one worker process. The host sees that whoever asks has the token and runs the same code, starts the
process, and carries frames between the two without reading them; when either ends, so does the other.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable

from turnwise.agents.workers.agreement import code, difference, said_in
from turnwise.agents.workers.process import Ending, LocalProcess
from turnwise.agents.workers.sealed import keep_alive, prove_to_caller
from turnwise.agents.workers.wire import Bye, Connection, HostBeat, WorkerEnded, framed, pack
from turnwise.errors import RunError
from turnwise.tools.processes import at_once
from turnwise.tools.sandbox.reap import reap

BEAT_S = 1.0
END_S = 15.0
"""Seconds that a process may take to close its environments when its run is gone; it is killed then."""
MOST_UNPROVEN = 32
"""Callers at a time that have not shown the token yet."""
MOST_TIMES = 4
"""So many times ``processes`` may run at a time, for several runs and for environments that must be alone."""
_logger = logging.getLogger(__name__)


class WorkerHost:
    """Worker processes for whoever has the token.

    Args:
        door: the socket on which it listens.
        token: that callers must have.
        processes: how many a run is to have here.

    Attributes:
        started: how many processes were started so far.

    Raises:
        RunError: there is no token, or no process.
    """

    def __init__(self, door: socket.socket, token: str, processes: int) -> None:
        if not token:
            raise RunError(
                "A host of environments runs programs for whoever asks, and has no token.", "Give it one."
            )
        if processes < 1:
            raise RunError(f"A host of {processes} processes can do nothing.", "Give at least 1.")
        self.processes, self.started = processes, 0
        self._door, self._token = door, token
        self._lock = threading.Lock()
        self._unproven = threading.BoundedSemaphore(MOST_UNPROVEN)
        self._hosted: set[HostedWorker] = set()
        self._closing = threading.Event()

    def serve(self) -> None:
        """Answer until :meth:`close` is called, in a thread or by a signal's handler."""
        while not self._closing.is_set():
            try:
                end, caller = self._door.accept()
            except OSError as error:
                if not self._closing.is_set():  # too many files are open, or the caller was gone at once
                    _logger.warning("a caller could not be answered: %s", error)
                    self._closing.wait(0.1)
                continue
            name = f"{caller[0]}:{caller[1]}"
            if not self._unproven.acquire(blocking=False):
                end.close()
                continue
            threading.Thread(target=self._answer, args=(end, name), name=f"for {name}", daemon=True).start()

    def stop(self) -> None:
        """Have :meth:`serve` return."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no more callers, and end every process with what it started."""
        self.stop()
        with self._lock:
            ending = list(self._hosted)
        at_once(functools.partial(hosted.end, "was ended with its host") for hosted in ending)
        self._door.close()

    @property
    def running(self) -> int:
        """The number of processes that run now."""
        return len(self._hosted)

    def _answer(self, end: socket.socket, caller: str) -> None:
        try:
            keep_alive(end)
            connection = prove_to_caller(end, self._token)
        except OSError as error:
            _logger.info("%s: %s", caller, error)
            connection = None
        else:
            if connection is None:
                _logger.warning("%s has another token and was refused", caller)
        finally:
            self._unproven.release()
        if connection is None:
            end.close()
            return
        with contextlib.closing(connection), contextlib.suppress(OSError):
            self._host(connection, caller)

    def _host(self, connection: Connection, caller: str) -> None:
        """Start a process for a caller who has the token, and serve it until either is gone."""
        asked = connection.receive_packed()
        why = self._refusal(asked)
        if why:
            _logger.warning("%s was refused: %s", caller, why)
        said = json.dumps({"refused": why, "processes": self.processes})
        connection.send_packed(framed(said.encode()))
        if why:
            return
        with self._lock:
            if self._closing.is_set():
                return
            hosted = HostedWorker(connection, self.started, caller)
            self.started += 1
            self._hosted.add(hosted)
        try:
            hosted.serve()
        finally:
            with self._lock:
                self._hosted.discard(hosted)

    def _refusal(self, asked: bytes | None) -> str:
        """Why a caller with the token has no process all the same; empty if it has one."""
        theirs = said_in(asked)
        if not isinstance(theirs.get("code"), dict):
            return "it did not say which version it is of"
        if differs := difference(theirs["code"], code()):  # in the caller's words: here is the run
            return f"{differs}: install the same version on both"
        if len(self._hosted) >= MOST_TIMES * self.processes:
            return f"{len(self._hosted)} processes run here already"
        return ""


def open_door(host: str, port: int) -> socket.socket:
    """A socket on which nobody is answered yet; port 0 is a free one.

    Raises:
        RunError: it cannot be listened on there.
    """
    try:
        return socket.create_server((host, port))
    except (OSError, OverflowError) as error:
        raise RunError(
            f"Cannot listen on {host}:{port}: {error}.", "Choose another --host or --port."
        ) from error


def serve_until_told(door: socket.socket, token: str, processes: int, ready: Callable[[str], None]) -> int:
    """Be a host of so many processes (0: one for each core) until SIGTERM or SIGINT; how many were started.

    ``ready`` is told the address once callers are answered.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    host = WorkerHost(door, token, processes or cores or 1)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: host.stop())
    with contextlib.closing(host):
        name, port = door.getsockname()[:2]
        ready(f"{name}:{port}")
        host.serve()
    return host.started


class HostedWorker:
    """One worker process and the connection to the run that it serves.

    Args:
        connection: to the run.
        number: of the process, for messages.
        caller: the run's address.
    """

    def __init__(self, connection: Connection, number: int, caller: str) -> None:
        self._connection, self._caller = connection, caller
        self._process = LocalProcess(number)
        self._number = number
        self._pid, self._why = 0, ""
        self._over = threading.Event()

    def serve(self) -> None:
        """Carry frames both ways until the process has ended."""
        _logger.info("worker %d serves %s", self._number, self._caller)
        threads = [
            threading.Thread(target=task, name=f"worker {self._number}", daemon=True)
            for task in (self._to_process, self._beat)
        ]
        for thread in threads:
            thread.start()
        while (frame := self._process.receive_packed()) is not None:
            with contextlib.suppress(OSError):  # the run is gone; _to_process ends the process
                self._connection.send_packed(frame)
        ending = self._process.wait(END_S) or Ending(None)
        self._over.set()
        with contextlib.suppress(OSError):
            self._connection.send(WorkerEnded(ending.code, ending.words, self._why))
        self._connection.hang_up()
        for thread in threads:
            thread.join(END_S)
        self._process.close(END_S)
        for removed in reap(self._pid) if self._pid else ():
            _logger.info("worker %d left behind: %s", self._number, removed)
        _logger.info("worker %d has ended: %s", self._number, self._why or ending)

    def end(self, why: str) -> None:
        """End the process, and say to the run that no environment is to blame; returns when it has ended."""
        self._why = why
        threading.Thread(target=self._say_bye, daemon=True).start()  # a process that is frozen takes nothing
        if self._process.wait(END_S) is None:
            self._process.kill()
        self._over.wait(END_S)

    def _to_process(self) -> None:
        while (frame := self._connection.receive_packed()) is not None:
            try:
                self._process.send_packed(frame)
            except OSError:  # it has ended
                return
        if not self._over.is_set():
            self.end(self._connection.damage or "its run is gone")

    def _say_bye(self) -> None:
        with contextlib.suppress(OSError):
            self._process.send_packed(pack(Bye()))

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            self._pid = self._pid or self._process.worker_pid()
            try:
                self._connection.send(HostBeat())
            except OSError:
                self.end("its run is gone")
                return
