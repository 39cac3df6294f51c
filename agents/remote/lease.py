"""Lease of an engine: one run at a time gives it weights, and keeps its lease by a sign of life now and then.

A lease is taken over when its holder is gone: it gave the lease back, its process on this machine has ended, or nothing was
heard of it for :data:`LEASE_S`. The same run, resumed, has its lease still.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time

import pydantic

from turnwise.agents.remote.client import RemoteServer
from turnwise.agents.remote.protocol import LEASE, LeaseBody, LeaseFacts
from turnwise.agents.remote.transfer import locality
from turnwise.errors import EngineError
from turnwise.tools.owner import lives, name_of

LEASE_S, BEAT_S = 20.0, 2.0
"""After how much silence a lease is lost; how often its holder gives a sign of life."""
ASK_S = 5.0
STEERING = frozenset(
    {
        "/pause",
        "/resume",
        "/init_weight_transfer_engine",
        "/start_weight_update",
        "/update_weights",
        "/finish_weight_update",
    }
)


class Taken(EngineError):
    """Another run has an engine's lease, and lives."""


class Lease:
    """The server's side: who has the engine."""

    def __init__(self) -> None:
        self._holder: LeaseBody | None = None
        self._heard = 0.0

    def ask(self, body: LeaseBody) -> LeaseFacts:
        """Give the lease to who asks, or back; or say who has it."""
        holder = self._present()
        if holder is not None and holder.run != body.run:
            return LeaseFacts(
                granted=False, holder=holder.holder, silent_s=round(time.monotonic() - self._heard, 1)
            )
        self._holder, self._heard = None if body.release else body, time.monotonic()
        return LeaseFacts(granted=True)

    def refusal(self, path: str, run: str) -> str:
        """Why a request to steer the engine, in the name of ``run``, is refused; empty if it is not."""
        if path not in STEERING:
            return ""
        holder = self._present()
        if holder is None or holder.run == run:
            return ""
        return f"The engine is used by another run: {holder.holder}."

    def _present(self) -> LeaseBody | None:
        """The holder, unless it is gone."""
        holder = self._holder
        if holder is None or time.monotonic() - self._heard > LEASE_S:
            return None
        here = bool(holder.local) and holder.local == _processes()
        return None if here and not lives(holder.process) else holder


class LeaseHolder:
    """The run's side.

    Args:
        run: an id, the same when the run is resumed; one of its own unless given.
        name: of the run, for whoever is refused.
    """

    def __init__(self, run: str = "", name: str = "") -> None:
        self.run = run or secrets.token_hex(8)
        said = f"process {os.getpid()} on {socket.gethostname()}"
        self._body = LeaseBody(
            run=self.run,
            holder=f"{name} ({said})" if name else said,
            process=name_of(os.getpid()),
            local=_processes(),
        )

    def take(self, server: RemoteServer) -> None:
        """Take an engine's lease. Blocks: where its holder has fallen silent, until the lease is lost.

        Raises:
            Unreachable: the server does not answer.
            Taken: another run has it, and lives.
        """
        silent = 0.0
        while not (found := self._ask(server, self._body)).granted:
            if found.silent_s < silent:  # its holder has spoken meanwhile
                raise self.refused(server, found)
            silent = found.silent_s
            time.sleep(BEAT_S / 8)
        server.run = self.run

    def beat(self, server: RemoteServer) -> bool:
        """Give a sign of life; whether the lease is still this run's."""
        return self._ask(server, self._body).granted

    def give_back(self, server: RemoteServer) -> None:
        """Let others have it.

        Raises:
            EngineError: the server does not answer.
        """
        self._ask(server, self._body.model_copy(update={"release": True}))
        server.run = ""

    def check(self, server: RemoteServer) -> None:
        """See that another run does not have it, without taking it for longer than that.

        Raises:
            Taken: another run has it, and lives.
            Unreachable: the server does not answer.
        """
        self.take(server)
        self.give_back(server)

    @staticmethod
    def refused(server: RemoteServer, found: LeaseFacts) -> Taken:
        """Return the error to raise where another run has an engine."""
        return Taken(
            f"The engine at {server.name} is used by another run: {found.holder}, heard of {found.silent_s:.0f} s ago.",
            "A run changes the weights of its engines: start others for this one (`turnwise serve-engine`), or wait until "
            "that one ends.",
        )

    @staticmethod
    def _ask(server: RemoteServer, body: LeaseBody) -> LeaseFacts:
        said = server.call("POST", LEASE, body.model_dump(), seconds=ASK_S)
        try:
            return LeaseFacts.model_validate_json(said)
        except pydantic.ValidationError as error:
            raise server.foreign(LEASE, error) from error


def _processes() -> str:
    """Names what numbers processes: this machine, or a container on it; empty where nobody knows."""
    with contextlib.suppress(OSError):
        return f"{locality()}:{os.readlink('/proc/self/ns/pid')}" if locality() else ""
    return ""
