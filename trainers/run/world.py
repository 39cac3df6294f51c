"""Learners that something else has started, on one machine or on several: torchrun, or SLURM with torchrun's variables.

Each process is told its number (RANK), how many there are (WORLD_SIZE) and where they meet (MASTER_ADDR, MASTER_PORT). The
first one is the run; the others connect to it and learn what it sends. All must see the run's folder, where the first one
leaves the token that the others prove to have, and its checkpoints.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.workers.agreement import code, difference, said_in
from turnwise.agents.workers.sealed import (
    PROVE_S,
    HostRefusedError,
    keep_alive,
    prove_to_caller,
    prove_to_host,
)
from turnwise.agents.workers.wire import Connection, framed
from turnwise.errors import RunError
from turnwise.tools.processes import gpu_names
from turnwise.trainers.learn.ranks import Meeting

JOIN_S = 300.0
"""Seconds that the others may take to come, once the first has begun."""
MOST_UNPROVEN = 32
"""Callers at a time that have not shown the token and said who they are yet."""
AGAIN_S = 0.5
"""After how long a learner that was hung up on calls again."""
_ORDERS = "turnwise/orders"
_ROOMS = ("tasks", "tools", "envs", "agents", "trainers")
_logger = logging.getLogger(__name__)
_TOLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class RankPlace(NamedTuple):
    """A learner's place among those of a run.

    Attributes:
        rank: its number; the first one is the run.
        size: how many there are.
        local_rank, local_size: the same on its machine.
        address, port: where they meet.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    address: str
    port: int


def world_of(variables: Mapping[str, str]) -> RankPlace | None:
    """The place that a process was given by these variables; None where it is alone.

    >>> world_of({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"})
    RankPlace(rank=1, size=2, local_rank=1, local_size=2, address='node0', port=29500)
    >>> world_of({"MASTER_PORT": "29500"}) is world_of({"RANK": "0", "WORLD_SIZE": "1"}) is None
    True

    Raises:
        RunError: the variables are not whole, or no numbers.
    """
    if "RANK" not in variables or variables.get("WORLD_SIZE", "1") == "1":
        return None
    try:
        rank, size = int(variables["RANK"]), int(variables["WORLD_SIZE"])
        local_rank = int(variables.get("LOCAL_RANK", rank))
        local_size = int(variables.get("LOCAL_WORLD_SIZE", size))
        address, port = variables["MASTER_ADDR"], int(variables["MASTER_PORT"])
    except (KeyError, ValueError) as error:
        said = ", ".join(f"{name}={variables.get(name, '')}" for name in _TOLD)
        raise RunError(
            f"This process is one of several learners, by variables that are not whole: {said} ({error}).",
            "Start them by torchrun, set all of them, or unset RANK and WORLD_SIZE to learn alone.",
        ) from error
    if not 0 <= rank < size:
        raise RunError(f"This process is learner {rank} of {size}.", "Count them from 0.")
    return RankPlace(rank, size, local_rank, local_size, address, port)


class Follower:
    """A learner of another process group, as the first one sees it."""

    def __init__(self, number: int, connection: Connection, name: str) -> None:
        self.number, self._name = number, name
        self._connection = connection
        self._ready = threading.Event()
        self._over = threading.Event()
        self._listening = threading.Thread(target=self._listen, name=f"learner {number}", daemon=True)
        self._listening.start()

    def tell(self, message: object) -> None:
        """Send it a message; that it cannot take it shows when it is waited for."""
        with contextlib.suppress(OSError):
            self._connection.send(message)

    def await_ready(self, seconds: float) -> None:
        """Wait until it has loaded everything.

        Raises:
            RunError: it ends first, or takes too long.
        """
        until = time.monotonic() + seconds
        while not self._ready.wait(0.1):
            if self._over.is_set() or time.monotonic() > until:
                raise RunError(
                    f"A learner did not start: {self.ended(0) or f'nothing came for {seconds:.0f} s'}.",
                    f"Look at what {self._name} printed.",
                )

    def ended(self, seconds: float) -> str:
        """Say how it ended, if it does so within ``seconds``; empty if not."""
        return f"learner {self.number} ({self._name}) has ended" if self._over.wait(seconds) else ""

    def close(self) -> None:
        """End it."""
        self._connection.hang_up()
        self._listening.join()
        self._connection.close()

    def _listen(self) -> None:
        while self._connection.receive() is not None:
            self._ready.set()
        self._over.set()


class Gathering:
    """Meeting at which the first learner of a world waits for the others, from before anything is spent.

    Args:
        world: its place.
        run: the run's folder.
    """

    def __init__(self, world: RankPlace, run: Path) -> None:
        self.world = world
        self._token_file = _token_file(run)
        self._token = secrets.token_hex(32)
        store, host = _meet(world)
        self.meeting = Meeting(store, host)
        self._door = socket.create_server((host, 0))
        self._found: dict[int, Follower] = {}
        self._changed = threading.Condition()
        self._unproven = threading.BoundedSemaphore(MOST_UNPROVEN)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._answer_all, name="learners", daemon=True)
        self._thread.start()
        self._token_file.unlink(missing_ok=True)
        self._token_file.touch(0o600)
        self._token_file.write_text(self._token)
        store.set(_ORDERS, f"{host}:{self._door.getsockname()[1]}")

    def all(self) -> list[Follower]:
        """The others, as soon as all have come.

        Raises:
            RunError: one does not.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._found) == self.world.size - 1, JOIN_S)
            missing = {*range(1, self.world.size)} - {*self._found}
        if missing:
            raise RunError(
                f"Of {self.world.size} learners {', '.join(map(str, sorted(missing)))} did not come within {JOIN_S:.0f} s.",
                "Look at what they printed: do they see the run's folder, and this machine?",
            )
        return [self._found[rank] for rank in sorted(self._found)]

    def close(self) -> None:
        """End the others, and take nobody more."""
        self._token_file.unlink(missing_ok=True)
        self._closing.set()
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._door.close()
        with self._changed:  # nobody is taken in after this
            found = list(self._found.values())
        for follower in found:
            follower.close()

    def _answer_all(self) -> None:
        while not self._closing.is_set():
            try:
                end, caller = self._door.accept()
            except OSError as error:
                if not self._closing.is_set():  # too many files are open, or the caller was gone at once
                    _logger.warning("a caller could not be answered: %s", error)
                    self._closing.wait(0.1)
                continue
            if not self._unproven.acquire(blocking=False):
                end.close()  # a learner calls again
                continue
            name = f"{caller[0]}:{caller[1]}"
            threading.Thread(target=self._answer, args=(end, name), name=f"for {name}", daemon=True).start()

    def _answer(self, end: socket.socket, caller: str) -> None:
        """Hear who a caller is. Each has a thread: one that says nothing keeps nobody waiting."""
        connection, said = None, dict[str, Any]()
        try:
            keep_alive(end)
            connection = prove_to_caller(end, self._token)
            if connection is not None:
                end.settimeout(PROVE_S)
                said = said_in(connection.receive_packed())
                end.settimeout(None)
        except OSError as error:
            _logger.info("%s: %s", caller, error)
        finally:
            self._unproven.release()
        if connection is None:
            end.close()
        elif not self._take_in(connection, said, caller):
            connection.close()

    def _take_in(self, connection: Connection, said: Mapping[str, Any], caller: str) -> bool:
        """Have a caller with the token as the learner that it says it is; whether it is one of this run."""
        rank, theirs = said.get("rank"), said.get("code")
        why = difference(code(_ROOMS), theirs) if isinstance(theirs, dict) else "it did not say what it is"
        with self._changed:
            if not why and (rank in self._found or rank not in range(1, self.world.size)):
                why = f"it is learner {rank} of {self.world.size}, and there is one already"
            if not why and self._closing.is_set():
                why = "the run is ending"
            with contextlib.suppress(OSError):
                connection.send_packed(framed(json.dumps({"refused": why}).encode()))
            if why or not isinstance(rank, int):
                return False
            self._found[rank] = Follower(rank, connection, caller)
            self._changed.notify_all()
        return True


@contextlib.contextmanager
def gathered(world: RankPlace | None, run: Path) -> Iterator[Gathering | None]:
    """The other learners of a world, for a while; None where there is no world."""
    if world is None:
        yield None
        return
    with contextlib.closing(Gathering(world, run)) as gathering:
        yield gathering


class Joined(NamedTuple):
    """One of the others, connected to the first.

    Attributes:
        connection: over which it is told what to learn.
        meeting: where gradients are added up.
    """

    connection: Connection
    meeting: Meeting


@contextlib.contextmanager
def joined(world: RankPlace, run: Path) -> Iterator[Joined]:
    """Join the first learner, which decides when this one ends.

    Raises:
        RunError: it is not there, has other code, or the run's folder is another's.
    """
    for name in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # Ctrl-C is for the first learner, which saves and lets the others go
        signal.signal(name, signal.SIG_IGN)
    gpus = gpu_names(world.local_size) if _sees_gpus() else []
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[world.local_rank]
    store, host = _meet(world)
    with _open(world, store, run) as connection:
        connection.send_packed(framed(json.dumps({"rank": world.rank, "code": code(_ROOMS)}).encode()))
        said = said_in(connection.receive_packed())
        if why := said.get("refused", "it hung up"):
            raise RunError(
                f"The first learner refuses learner {world.rank}: {why}.", "Install the same version for all."
            )
        yield Joined(connection, Meeting(store, host))


@contextlib.contextmanager
def _open(world: RankPlace, store: Any, run: Path) -> Iterator[Connection]:
    try:
        store.wait([_ORDERS], timedelta(seconds=JOIN_S))
        address = store.get(_ORDERS).decode()
        until = time.monotonic() + JOIN_S
        while (connection := _call(address, run, until)) is None:
            time.sleep(AGAIN_S)
    except (RuntimeError, OSError) as error:
        raise RunError(
            f"Learner {world.rank} of {world.size} finds no first learner by {world.address}:{world.port}: {error}",
            "Look at what the first one printed.",
        ) from error
    with contextlib.closing(connection):
        yield connection


def _call(address: str, run: Path, until: float) -> Connection | None:
    """Connect to the first learner; None where it hung up before it said anything: too many others call it just now.

    Raises:
        RunError: it is another's, or hangs up for too long.
        OSError: it is not there.
    """
    host, _, port = address.rpartition(":")
    with contextlib.ExitStack() as undo:
        end = undo.enter_context(socket.create_connection((host, int(port)), JOIN_S))
        try:
            keep_alive(end)
            connection = prove_to_host(end, _read_token(run), address)
        except HostRefusedError as error:
            raise RunError(error.cause, f"Do all learners see the run's folder {run}?") from error
        except OSError as error:
            if time.monotonic() > until:
                raise RunError(
                    f"The first learner at {address} hung up: {error}.", "Look at what it printed."
                ) from error
            return None
        undo.pop_all()
        return connection


def _token_file(run: Path) -> Path:
    return run / "learners.token"


def _read_token(run: Path) -> str:
    """The token that the first learner left; a shared folder may show it a moment later."""
    until = time.monotonic() + JOIN_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if token := _token_file(run).read_text():
                return token
        time.sleep(0.2)
    raise RunError(
        f"There is no {_token_file(run)}, which the first learner leaves there.",
        "Give all learners the same --out, in a folder that all of them see.",
    )


def _meet(world: RankPlace) -> tuple[Any, str]:
    """The store of a world, and the address by which this process is reached from there."""
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    try:
        if "TORCHELASTIC_USE_AGENT_STORE" in os.environ:
            store, _, _ = next(
                rendezvous("env://", world.rank, world.size, timeout=timedelta(seconds=JOIN_S))
            )
        else:
            store: Any = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
                world.address,
                world.port,
                world.size,
                world.rank == 0,
                timedelta(seconds=JOIN_S),
                wait_for_workers=False,
            )
        family, kind, _, _, place = socket.getaddrinfo(world.address, world.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as towards:
            towards.connect(place)  # sends nothing: it only chooses the way
            host = towards.getsockname()[0]
    except (RuntimeError, OSError) as error:
        raise RunError(
            f"Learner {world.rank} of {world.size} cannot meet the others at {world.address}:{world.port}: {error}",
            "See to MASTER_ADDR and MASTER_PORT, which must be free on the first machine.",
        ) from error
    attempt = os.environ.get(
        "TORCHELASTIC_RESTART_COUNT", "0"
    )  # torchrun's store outlives those that it starts again
    return distributed.PrefixStore(f"turnwise-{attempt}", store), host  # pyright: ignore[reportPrivateImportUsage]


def _sees_gpus() -> bool:
    import torch

    return torch.cuda.is_available()
