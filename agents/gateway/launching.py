"""Starts agents' programs by a small process of their own (:mod:`turnwise.agents.gateway.fork_server`).

This process has loaded a model; to fork it for each episode costs more than most programs do. A program that is written in
Python may besides begin as a fork of a process that has imported its libraries already (``preload``).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault
from turnwise.agents.gateway import fork_server
from turnwise.secrets import public_environment
from turnwise.tools.owner import mark

KEPT = 64 * 1024
"""Bytes of what a program writes that are kept."""
FLOOD = 16 * 2**20
"""Bytes after which a program that writes is ended."""
MOST_IDLE = 64
"""Supervisors that wait for a program."""
GRACE_S = fork_server.END_S + 2
"""Seconds that the end of a program and of all that it started may take."""


class ProgramJob(NamedTuple):
    """A command to run, where, with which variables; ``fork`` means that it is a script, run in a fork."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    fork: bool = False


class Exited(NamedTuple):
    """The end of a program. ``why`` is the first of these that holds: time, output, its exit."""

    code: int
    why: Literal["exit", "timeout", "flood"]
    stdout: str
    stderr: str


class Launcher:
    """A fork server, started when it is first needed; may be used from any event loop.

    Args:
        python: the interpreter that it runs in, with its flags; ours unless given.
        modules: that it imports before anything is run.
        env: variables of the interpreter beside the public ones of this process.
    """

    def __init__(
        self,
        python: Sequence[str] = (),
        modules: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [*(python or (sys.executable, "-S", "-E")), fork_server.__file__]
        self._modules, self._env = modules, env or {}
        self._lock = threading.Lock()
        self._server: _ForkServer | None = None
        self._end: weakref.finalize[..., Launcher] | None = None
        self._numbers = itertools.count(1)

    async def run(self, job: ProgramJob, told: bytes, timeout: float) -> Exited:
        """Run a program to its end; ``told`` is its standard input.

        Raises:
            Fault: it could not be started.
        """
        loop, number, body = (
            asyncio.get_running_loop(),
            next(self._numbers),
            json.dumps(job._asdict()).encode(),
        )
        holder, lease, ours = self._hand_over(
            told, fork_server.HEADER.pack(fork_server.JOB, number, len(body))
        )
        flooded = asyncio.Event()
        outputs = [_Output(descriptor, flooded) for descriptor in ours]
        reading = [output.ended for output in outputs]
        answer = asyncio.create_task(_line(lease))
        timed_out = sent = False
        try:
            async with asyncio.timeout(timeout):
                await loop.sock_sendall(lease, body)
                sent = True
                await _first(asyncio.shield(answer), flooded.wait())
        except TimeoutError:
            timed_out = True
        except OSError:
            pass  # nobody is there any more, so there will be no answer
        finally:
            if not answer.done():
                with contextlib.suppress(OSError):
                    if sent:  # the supervisor ends the program, and answers
                        lease.send(fork_server.HEADER.pack(fork_server.END, number, 0))
                    else:
                        lease.shutdown(socket.SHUT_WR)
            await asyncio.wait([answer, *reading], timeout=GRACE_S)
            usable = sent and all(one.done() for one in reading) and _told(answer).get("left") == 0
            answer.cancel()
            for output in outputs:
                output.close()
            self._take_back(holder, lease, usable=usable)
        code = await self._code_of(answer)
        why = "timeout" if timed_out else "flood" if flooded.is_set() else "exit"
        return Exited(code, why, *(output.text for output in outputs))

    def close(self) -> None:
        """End the process, and with it all that it runs."""
        with self._lock:
            if self._end is not None:
                self._end()
            self._server = None

    def _hand_over(self, told: bytes, header: bytes) -> tuple[_ForkServer, socket.socket, list[int]]:
        """Give a supervisor the program's streams: who it is, its lease, and where the outputs are read."""
        pipes = [os.pipe() for _ in ("stdout", "stderr")]
        try:
            with _readable(told) as stdin, self._lock:
                holder = self._opened()
                lease = holder.lease()
                socket.send_fds(lease, [header], [stdin.fileno(), *(write for _, write in pipes)])
        except OSError as error:
            for read, _ in pipes:
                os.close(read)
            raise Fault(Outcome.INFRA_ERROR, f"the agent's program cannot be started: {error}") from error
        finally:
            for _, write in pipes:
                os.close(write)
        return holder, lease, [read for read, _ in pipes]

    def _take_back(self, holder: _ForkServer, lease: socket.socket, *, usable: bool) -> None:
        """Keep a lease for the next program, where its supervisor is as it was."""
        with self._lock:
            if usable and holder is self._server and len(holder.idle) < MOST_IDLE:
                holder.idle.append(lease)
            else:
                lease.close()

    def _opened(self) -> _ForkServer:
        """Return the fork server, which is started where there is none, or no more."""
        if self._server is None or self._server.process.poll() is not None:
            if self._end is not None:
                self._end()
            control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            said = tempfile.TemporaryFile()  # noqa: SIM115 (the fork server writes to it as long as it lives)
            with theirs:
                process = subprocess.Popen(
                    [*self._command, str(theirs.fileno()), *self._modules],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    pass_fds=[theirs.fileno()],
                    env=public_environment() | dict(self._env) | mark(),
                    start_new_session=True,
                )
            self._server = _ForkServer(process, control, said, [])
            self._end = weakref.finalize(self, self._server.close)
        return self._server

    async def _code_of(self, answer: asyncio.Task[bytes]) -> int:
        if "code" in (told := _told(answer)):
            return told["code"]
        for _ in range(100):
            if self._server is None or self._server.process.poll() is not None:
                break
            await asyncio.sleep(0.01)  # a process that dies closes its leases first
        else:
            return -9  # somebody killed the program's own supervisor
        if self._server is None:
            raise Fault(Outcome.INFRA_ERROR, "the process that starts the agent's program was closed")
        self._server.said.seek(0)
        said = self._server.said.read()[-400:].decode("utf-8", "replace").strip()
        raise Fault(Outcome.INFRA_ERROR, f"the process that starts the agent's program ended: {said}")


class _ForkServer(NamedTuple):
    """The process that forks supervisors, the socket on which it is asked, what it says of its troubles, and leases of idle supervisors."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    said: IO[bytes]
    idle: list[socket.socket]

    def lease(self) -> socket.socket:
        """The lease of a supervisor that runs nothing: an idle one's that is still there, or a new one's."""
        while self.idle:
            lease = self.idle.pop()
            if not fork_server.either(lease.fileno()).poll(0):
                return lease
            lease.close()
        lease, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.control, [b"k"], [theirs.fileno()])
            except OSError:
                lease.close()
                raise
        lease.setblocking(False)
        return lease

    def close(self) -> None:
        """End it; one that does not end by itself is killed."""
        self.control.close()
        while self.idle:
            self.idle.pop().close()
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()


def _readable(text: bytes) -> IO[bytes]:
    """A file of this text, at its beginning."""
    if hasattr(os, "memfd_create"):  # in a tenth of the time
        file = os.fdopen(os.memfd_create("stdin"), "w+b", 0)
    else:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (whoever asked closes it)
    file.write(text)
    file.seek(0)
    return file


async def _line(lease: socket.socket) -> bytes:
    """Read a supervisor's answer; what there is of it where it ends."""
    said = b""
    while not said.endswith(b"\n") and (part := await asyncio.get_running_loop().sock_recv(lease, 4096)):
        said += part
    return said


def _told(answer: asyncio.Task[bytes]) -> dict[str, int]:
    """The exit code and how many would not end; nothing where the supervisor did not answer."""
    if answer.done() and not answer.cancelled():
        with contextlib.suppress(OSError, ValueError):
            return json.loads(answer.result())
    return {}


class _Output:
    """Output of a program: the end of it is kept, all of it is read, so that its pipe never fills."""

    def __init__(self, descriptor: int, flooded: asyncio.Event) -> None:
        self._descriptor, self._flooded = descriptor, flooded
        self._kept, self._total = b"", 0
        self._loop = asyncio.get_running_loop()
        self.ended = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._more)

    def _more(self) -> None:
        try:
            part = os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return
        self._kept, self._total = (self._kept + part)[-KEPT:], self._total + len(part)
        if self._total > FLOOD:
            self._flooded.set()
        if not part:
            self.close()

    def close(self) -> None:
        """Read no more."""
        if not self.ended.done():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.ended.set_result(None)

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def script_of(command: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """A command of Python taken apart: the interpreter with its flags, the script with its arguments; None: it is none.

    >>> interpreter, script = script_of(["python3", "-S", "agent.py", "--fast"]) or ([], [])
    >>> Path(interpreter[0]).name, interpreter[1:], script
    ('python3', ['-S'], ['agent.py', '--fast'])
    >>> script_of(["bash", "agent.sh"]) is script_of(["python3", "-c", "pass"]) is None
    True
    """
    if not command or not Path(command[0]).name.startswith("python"):
        return None
    place = 1
    while place < len(command) and command[place] in ("-S", "-E", "-s", "-I", "-u", "-B", "-O"):
        place += 1
    if place == len(command) or command[place].startswith("-"):
        return None
    return [shutil.which(command[0]) or command[0], *command[1:place]], [*command[place:]]


async def _first(*waiting: Coroutine[Any, Any, object] | asyncio.Future[Any]) -> None:
    """Wait until one of several things happens."""
    tasks = [asyncio.ensure_future(one) for one in waiting]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
