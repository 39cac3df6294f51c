"""Worker processes on other hosts, as the run sees them: connections that are kept up, and processes at their other ends.

A host that does not answer is asked again and again; one that has another token or other code is named. Hosts are listed by
address and in a file that is read again, so that they join a running run and leave it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault
from turnwise.agents.remote.guard import read_token
from turnwise.agents.remote.roster import Roster
from turnwise.agents.workers.agreement import code, known_envs, said_in
from turnwise.agents.workers.process import Ending
from turnwise.agents.workers.sealed import PROVE_S, HostRefusedError, keep_alive, prove_to_host
from turnwise.agents.workers.wire import Connection, HostBeat, WorkerEnded, framed
from turnwise.agents.workers.worker import START_S, Worker
from turnwise.errors import RunError, TurnwiseError
from turnwise.tools.processes import at_once

CLOSE_S = 20.0
LOST_LOOKS = 10
"""Looks in a row, a second each, without any sign of life, after which a host is taken to be gone."""
FIRST_REST_S, LONGEST_REST_S = 0.5, 10.0
"""Seconds after a failure before a host is asked again: twice as long each time."""
_AGREEMENT = -1
"""The slot of a process in which environments are compared, and none is made."""
_logger = logging.getLogger(__name__)


class WorkerHosts(NamedTuple):
    """The hosts (`turnwise serve-workers`) that a run's environments are on.

    Attributes:
        addresses: of each, ``HOST:PORT``.
        file: with more of them, one a line; it is read again while the run goes on. Empty: there is none.
        token_file: holds the token that they were started with.
        envs: environments whose source must be the same there as here.
        patience_s: how long an episode waits while no host serves.
    """

    addresses: Sequence[str] = ()
    file: str = ""
    token_file: str = ""
    envs: Sequence[str] = ()
    patience_s: float = 120.0


def parse_address(text: str) -> str:
    """An address of a host, as ``HOST:PORT``.

    >>> parse_address("node7:8800")
    'node7:8800'

    Raises:
        RunError: it is none.
    """
    host, colon, port = text.strip().rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise RunError(f"{text!r} is no address of a host of environments.", "Write HOST:PORT.")
    return f"{host}:{port}"


class HostedProcess:
    """A worker process on another host (:class:`~turnwise.agents.workers.process.WorkerProcess`)."""

    def __init__(self, connection: Connection, place: str) -> None:
        self.place = place
        self._connection = connection
        self._ending: Ending | None = None
        self._heard, self._silent = True, 0
        self._over = threading.Event()

    def send_packed(self, data: bytes) -> None:
        self._connection.send_packed(data)

    def receive(self) -> Any:
        while True:
            frame = self._connection.receive()
            self._heard = True
            if isinstance(frame, WorkerEnded):
                self._ending = Ending(frame.code, frame.words, frame.why)
            elif not isinstance(frame, HostBeat):
                break
        if frame is None:
            self._ending = self._ending or Ending(
                None, why=self._connection.damage or "is gone with its host"
            )
            self._over.set()
        return frame

    def look(self) -> None:
        self._silent = 0 if self._heard else self._silent + 1
        self._heard = False
        if self._silent >= LOST_LOOKS:
            self._ending = Ending(None, why=f"is lost: its host has said nothing for {LOST_LOOKS} s")
            self._connection.hang_up()

    def kill(self) -> None:
        self._connection.hang_up()  # the host ends it then

    def wait(self, seconds: float) -> Ending | None:
        return self._ending if self._over.wait(seconds) else None

    def close(self, seconds: float) -> None:
        self._connection.close()


class HostedWorkers:
    """The workers of all hosts of a run.

    Args:
        hosts: where they are.
        changed: called when one has come or gone; any thread may call it.
    """

    def __init__(self, hosts: WorkerHosts, changed: Callable[[], None]) -> None:
        self._hosts, self._changed = hosts, changed
        self._token = read_token(hosts.token_file)
        if not self._token:
            raise RunError(
                "Hosts of environments are named, and no token for them.",
                "Set scale.token_file to the file with it.",
            )
        self._envs = known_envs(hosts.envs)
        self._staying = {parse_address(text) for text in hosts.addresses}
        self._roster = Roster(hosts.file, parse_address)
        self._numbers = itertools.count()
        self._lines: dict[str, HostLine] = {}
        self._leaving: tuple[HostLine, ...] = ()  # those that are no longer listed and have something in hand
        for address in dict.fromkeys([*self._staying, *self._roster.first()]):
            self._join(address)

    def workers(self) -> list[Worker]:
        """Those that environments may be given to, or have been."""
        lines = [*list(self._lines.values()), *self._leaving]
        return [worker for line in lines for worker in line.workers()]

    def look(self) -> None:
        """See which hosts have joined and left. Called each second."""
        change = self._roster.look()
        for address in change.joined:
            if address not in self._lines:
                _logger.warning("host %s has joined", address)
                self._join(address)
        for address in change.left:
            if address not in self._staying and address in self._lines:
                _logger.warning("host %s leaves", address)
                line = self._lines[address]
                self._leaving = (*self._leaving, line)  # before it is dropped: what it has in hand is watched
                del self._lines[address]
                line.leave()
        self._leaving = tuple(line for line in self._leaving if not line.over)

    def why_none(self) -> str:
        """Why no host serves, in words."""
        found = [
            f"{line.address}: {line.trouble or 'it is being asked'}" for line in list(self._lines.values())
        ]
        return "; ".join(found) or "no host is listed"

    @property
    def hopeless(self) -> bool:
        """True if every host refuses, so that waiting is in vain."""
        lines = list(self._lines.values())
        return bool(lines) and all(line.refused for line in lines)

    def open_alone(self, on_end: Callable[[Worker], None]) -> Worker | None:
        """A process for one environment alone, on the host that has least to do; None where none can be had now."""
        lines = sorted(self._lines.values(), key=lambda line: sum(len(one.slots) for one in line.workers()))
        for line in lines:
            if line.workers():
                with contextlib.suppress(TurnwiseError, OSError, Fault):
                    return line.open(alone=True, on_end=on_end)
        return None

    def close(self) -> None:
        """End all of them, those of hosts that have left the list too."""
        at_once(line.close for line in (*list(self._lines.values()), *self._leaving))

    def _join(self, address: str) -> None:
        opening = functools.partial(self._open, address)
        self._lines[address] = HostLine(address, opening, self._changed)

    def _open(self, address: str, *, alone: bool, on_end: Callable[[Worker], None]) -> tuple[Worker, int]:
        """One more process on a host, and how many a run is to have there.

        Raises:
            HostRefusedError: the host does not serve this run.
            OSError: it is not there.
        """
        connection, facts = _call(address, self._token)
        worker = Worker(next(self._numbers), HostedProcess(connection, address), alone=alone, on_end=on_end)
        asked = worker.ask(_AGREEMENT, "agree", "comparing environments", START_S, (self._envs,), {})
        try:
            asked.result(START_S).raise_fault()
        except Fault as fault:
            worker.close(CLOSE_S)
            if fault.outcome is not Outcome.ENV_ERROR:
                raise ConnectionError(str(fault)) from fault
            raise HostRefusedError(f"{address}: {fault}", "See to that host.") from fault
        except TimeoutError:
            worker.kill()
            raise ConnectionError(f"it compared environments for more than {START_S:g} s") from None
        return worker, facts


def _call(address: str, token: str) -> tuple[Connection, int]:
    """Connect to a host, and see that both belong together; also how many processes a run is to have there.

    Raises:
        HostRefusedError: they do not.
        OSError: it is not there.
    """
    host, _, port = address.rpartition(":")
    end = socket.create_connection((host.strip("[]"), int(port)), PROVE_S)
    try:
        keep_alive(end)
        connection = prove_to_host(end, token, address)
        end.settimeout(PROVE_S)
        connection.send_packed(framed(json.dumps({"code": code()}).encode()))
        said = said_in(connection.receive_packed())
        end.settimeout(None)
    except BaseException:
        end.close()
        raise
    processes, why = said.get("processes"), said.get("refused")
    if isinstance(processes, int) and not why:
        return connection, processes
    connection.close()
    if why:
        raise HostRefusedError(f"{address} refuses: {why}.", "See to that host.")
    raise ConnectionError("it hung up")


class HostLine:
    """The connections to one host: as many processes as it offers, each opened again when it ends.

    Attributes:
        address: of the host.
        trouble: why it does not serve; empty while it does, or has not been asked yet.
        refused: it will not serve this run until somebody changes something.
    """

    def __init__(
        self, address: str, opening: Callable[..., tuple[Worker, int]], changed: Callable[[], None]
    ) -> None:
        self.address, self.trouble, self.refused = address, "", False
        self._opening, self._changed = opening, changed
        self._workers: list[Worker] = []
        self._wanted = 1
        self._lock = threading.Lock()
        self._leaving = False
        self._stir = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"host {address}", daemon=True)
        self._thread.start()

    def workers(self) -> list[Worker]:
        """Those that run, but for those that are alone."""
        with self._lock:
            return [worker for worker in self._workers if not worker.ended]

    @property
    def over(self) -> bool:
        """True if it has left, and its last process has ended."""
        return self._leaving and not self._thread.is_alive() and not self.workers()

    def open(self, *, alone: bool, on_end: Callable[[Worker], None]) -> Worker:
        """One more process beside those; see :meth:`HostedWorkers._open`."""
        return self._opening(alone=alone, on_end=on_end)[0]

    def leave(self) -> None:
        """Give it no more environments; processes end with their last one."""
        self._leaving = True
        self._stir.set()
        for worker in self.workers():
            worker.leaving = True
            if not worker.slots:
                threading.Thread(target=worker.close, args=(CLOSE_S,), daemon=True).start()

    def close(self) -> None:
        """End all its processes."""
        self._leaving = True
        self._stir.set()
        at_once(functools.partial(worker.close, CLOSE_S) for worker in self.workers())

    def _run(self) -> None:
        failures = 0
        while not self._leaving:
            self._stir.clear()
            rest = None
            if sum(worker.usable for worker in self.workers()) < self._wanted:
                failures = 0 if self._open_one() else failures + 1
                rest = 0.0 if not failures else min(LONGEST_REST_S, FIRST_REST_S * 2.0 ** (failures - 1))
            self._stir.wait(1.0 if rest is None else rest)

    def _open_one(self) -> bool:
        """Open one more process; whether that was possible."""
        trouble, refused = "", False
        try:
            worker, self._wanted = self._opening(alone=False, on_end=self._ended)
        except HostRefusedError as error:
            trouble, refused = error.cause, True
        except (TurnwiseError, OSError) as error:
            trouble = str(error) or type(error).__name__
        else:
            self._keep(worker)
        if trouble != self.trouble:
            said = f"does not serve: {trouble}" if trouble else "serves"
            _logger.warning("host %s %s", self.address, said)
        self.trouble, self.refused = trouble, refused
        self._changed()
        return not trouble

    def _keep(self, worker: Worker) -> None:
        with self._lock:
            self._workers.append(worker)
            leaving = self._leaving
        if leaving:
            worker.close(CLOSE_S)

    def _ended(self, worker: Worker) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._workers.remove(worker)
        self._stir.set()
        self._changed()
