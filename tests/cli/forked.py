"""Programs in processes of their own, forked from one that has loaded the large libraries already.

Loading torch and its like costs two seconds of processor time, which some two hundred commands would pay each. The
process that is forked has loaded nothing of Turnwise, and a program ends as Python ends it. What tests the start
itself, or libraries that are missing, starts Python afresh.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

LOADED = (
    *("numpy", "gymnasium", "pydantic", "cyclopts", "rich", "jinja2", "yaml", "backports.zstd", "immutables"),
    *("torch", "scipy.stats", "openai", "aiohttp", "pyarrow.parquet", "psutil", "tokenizers"),
)
TURNWISE = "from turnwise.cli import main; main()"


class Forked:
    """A program that runs; what ``subprocess.Popen`` is for one that Python starts."""

    def __init__(
        self,
        code: str,
        arguments: tuple[str, ...],
        files: tuple[int, int, int],
        *,
        cwd: Path,
        env: Mapping[str, str],
        new_session: bool = False,
    ) -> None:
        self._door = _server()
        asked = {"code": code, "arguments": arguments, "cwd": str(cwd), "env": dict(env), "new": new_session}
        socket.send_fds(self._door, [json.dumps(asked).encode()], files)
        self._door.settimeout(60)
        self.pid = int(self._door.recv(100))

    def wait(self, timeout: float) -> int:
        """Its exit status; it is killed when the time is up."""
        self._door.settimeout(timeout)
        try:
            return int(self._door.recv(100))
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            self._door.settimeout(60)
            self._door.recv(100)
            raise


def turnwise(
    *arguments: str, cwd: Path, env: Mapping[str, str], stdin: str = "", timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run the command ``turnwise``."""
    with contextlib.ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin.encode())
        given.seek(0)
        files = (given.fileno(), out.fileno(), err.fileno())
        code = Forked(TURNWISE, arguments, files, cwd=cwd, env=env).wait(timeout)
        return subprocess.CompletedProcess(arguments, code, _text(out), _text(err))


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


@cache
def _server() -> socket.socket:
    """The process that is forked; it ends with this one, or when this one closes its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {"OMP_WAIT_POLICY": "passive", "TORCH_CPP_LOG_LEVEL": "ERROR", **os.environ}
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env)

    def end() -> None:
        ours.close()
        process.wait(60)

    atexit.register(end)
    return ours


# --- in the process that is forked ---------------------------------------------------------------------


def serve(door: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. In the child: what it asks for; in the server, at the end: None."""
    for name in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    while True:
        message, files, *_ = socket.recv_fds(door, 1 << 20, 3)
        if not message:
            return None
        pid = os.fork()
        if pid == 0:
            for number, file in enumerate(files):
                os.dup2(file, number)
            door.close()
            return json.loads(message)
        for file in files:
            os.close(file)
        door.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        door.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(asked: Mapping[str, Any]) -> None:
    """Be the program that was asked for, as ``python -c`` would start it."""
    if asked["new"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    own = set(os.environ.get("PYTHONPATH", "").split(os.pathsep)) - {""}
    library = [item for item in sys.path[1:] if item not in own]
    sys.path[:] = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep), *library]
    sys.path[1:] = [item for item in sys.path[1:] if item]
    sys.argv[:] = ["-c", *asked["arguments"]]
    sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    tempfile.tempdir = None
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(asked["code"], "<string>", "exec"), main.__dict__)  # noqa: S102


def _stream(number: int) -> io.TextIOWrapper:
    old = (sys.stdin, sys.stdout, sys.stderr)[number]
    raw = open(number, "rb" if number == 0 else "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        raw, old.encoding, old.errors, line_buffering=number == 2 or raw.isatty(), write_through=False
    )


if __name__ == "__main__":
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        become(asked)
