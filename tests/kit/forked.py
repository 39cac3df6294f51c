"""Programs in processes of their own, forked from one that has loaded the large libraries already.

Loading torch and its like costs two to six seconds of processor time, which some three hundred programs would pay each. The
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
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

LOADED = (
    *("numpy", "gymnasium", "pydantic", "cyclopts", "rich", "jinja2", "yaml", "backports.zstd", "immutables"),
    *("torch", "scipy.stats", "openai", "aiohttp", "pyarrow.parquet", "psutil", "tokenizers"),
)
TRAINING = (  # brings triton, which complains on stderr when a program ends
    *("transformers.models.llama.modeling_llama", "transformers.models.auto.modeling_auto"),
    *("matplotlib.figure", "matplotlib.backends.backend_svg", "pandas", "safetensors.torch"),
)
_START = 300  # seconds: the first program waits for the libraries, a minute and more on a busy machine
TURNWISE = "from turnwise.cli import main; main()"
spent: dict[int, float] = {}
"""Seconds of processor time of each program that has ended, by its number, with those of the children that it waited for."""
PYTEST = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"


class Forked:
    """A program that runs; what ``subprocess.Popen`` is for one that Python starts."""

    def __init__(
        self,
        code: str,
        arguments: Sequence[str],
        files: tuple[int, int, int],
        *,
        cwd: Path,
        env: Mapping[str, str],
        new_session: bool = False,
        training: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self._end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked = {"code": code, "arguments": arguments, "cwd": str(cwd), "env": dict(env), "new": new_session}
        with theirs:
            socket.send_fds(_server(training), [json.dumps(asked).encode()], (*files, theirs.fileno()))
        self._end.settimeout(_START)
        self.pid = int(self._end.recv(100))

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        with contextlib.suppress(BlockingIOError):
            self._ended(0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Its exit status; it is killed when the time is up."""
        try:
            return self._ended(timeout)
        except TimeoutError:
            self.kill()
            raise

    def kill(self) -> None:
        """End it, if it runs, and wait for that."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self._ended(60)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, timeout: float) -> int:
        if self.returncode is None:
            self._end.settimeout(timeout)
            status, seconds = self._end.recv(100).split()
            self.returncode = int(status)
            spent[self.pid] = float(seconds)
            self._end.close()
        return self.returncode


class Program:
    """A forked program, what it reads, and what it writes."""

    def __init__(
        self,
        code: str,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: str = "",
        training: bool = False,
    ) -> None:
        given, self._out, self._err = (tempfile.TemporaryFile() for _ in range(3))  # noqa: SIM115
        with given:
            given.write(stdin.encode())
            given.seek(0)
            files = (given.fileno(), self._out.fileno(), self._err.fileno())
            self.process = Forked(code, arguments, files, cwd=cwd, env=env, training=training)

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """What it has written when it has ended; it is killed when the time is up."""
        with self._out, self._err:
            self.process.wait(timeout)
            return _text(self._out), _text(self._err)

    def close(self) -> None:
        """End it, if it runs, and forget what it wrote."""
        self.process.kill()
        self._out.close()
        self._err.close()


def run(
    code: str,
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: str = "",
    timeout: float = 120,
    training: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; one that trains begins with what that takes."""
    program = Program(code, arguments, cwd=cwd, env=env, stdin=stdin, training=training)
    out, err = program.communicate(timeout)
    return subprocess.CompletedProcess(arguments, program.process.returncode or 0, out, err)


def turnwise(*arguments: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """Run the command ``turnwise``."""
    return run(TURNWISE, *arguments, **given)


def script(path: Path) -> str:
    """The code that runs a file with its arguments, as ``python path …`` does."""
    return f"import runpy, sys; sys.argv[0] = {str(path)!r}; sys.path[0] = {str(path.parent)!r}; runpy.run_path({str(path)!r}, run_name='__main__')"


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


@cache
def _server(training: bool) -> socket.socket:
    """The process that is forked; it ends with this one, or when this one closes its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {"OMP_WAIT_POLICY": "passive", "TORCH_CPP_LOG_LEVEL": "ERROR", **os.environ}
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno()), *(TRAINING if training else ())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env)

    def end() -> None:
        ours.close()
        process.wait(60)

    atexit.register(end)
    return ours


# --- in the process that is forked ---------------------------------------------------------------------


def serve(door: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. In the child: what it asks for; in the server, at the end: None."""
    for name in (*LOADED, *sys.argv[2:]):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those who wait for a program are waited for by nobody
    while True:
        message, files, *_ = socket.recv_fds(door, 1 << 20, 4)
        if not message:
            return None
        if os.fork() == 0:
            door.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _forked(json.loads(message), files)
        for file in files:
            os.close(file)


def _forked(asked: dict[str, Any], files: list[int]) -> dict[str, Any]:
    """In the program: what is asked for. Its parent says its number and its exit status, and never comes back."""
    pid = os.fork()
    if pid == 0:
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
        for file in files:
            os.close(file)
        return asked
    for file in files[:3]:
        os.close(file)
    end = socket.socket(fileno=files[3])
    with contextlib.suppress(OSError):  # nobody asks any more
        end.send(str(pid).encode())
        _, status, usage = os.wait4(pid, 0)
        end.send(f"{os.waitstatus_to_exitcode(status)} {usage.ru_utime + usage.ru_stime}".encode())
    os._exit(0)


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
    if (
        "torch" in sys.modules and "OMP_NUM_THREADS" in os.environ
    ):  # torch has read it in the server's environment
        sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
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
