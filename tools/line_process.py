"""A program that is asked in lines of JSON over its stdin and answers on its stdout, each within a time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

import psutil

from turnwise.errors import InfraError
from turnwise.secrets import redact
from turnwise.tools.core import Json
from turnwise.tools.owner import make_folder, mark, remove_folder
from turnwise.tools.tail import Tail

LONGEST = 64 << 20
"""Bytes of the longest answer."""
_KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "JAVA_HOME",
    "SSL_CERT_FILE",
)  # of our variables; no keys
_PIECE = 1 << 16


class AnswerError(Exception):
    """The program says that what it was asked raised something; the text is its own."""


class LineProcess:
    """A program of others, in a folder and a session of its own; it gets few of our variables and none of our keys.

    ``name`` is what messages call it. What it writes to stderr is kept for messages. It is killed with all that it started when it does not answer in time,
    when it answers what was not asked, and by :meth:`close`.
    """

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        self._name, self._command = name, list(command)
        self._folder = make_folder("world")
        self._stderr = Tail()
        self._number = 0
        self._rest = b""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        own = {
            "TMPDIR": str(self._folder),
            "HOME": str(self._folder),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
        }
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr.file,
                env={**kept, **own, **(variables or {}), **mark()},
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            remove_folder(self._folder)
            raise InfraError(
                f"{self._command[0]} cannot be started: {error.strerror}.", "Is it there, and may it be run?"
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Json], seconds: float) -> Json:
        """Send a request, and return the value that is answered.

        Raises:
            AnswerError: the program says that this raised something, and goes on.
            InfraError: no answer came in time, or one that cannot be right; the program is killed.
        """
        self._number += 1
        until = time.monotonic() + seconds
        try:
            self._send(json.dumps({"id": self._number, **request}).encode() + b"\n", until)
            answer = json.loads(self._line(until))
            if not isinstance(answer, dict) or answer.get("id") != self._number:
                raise ValueError("it answers what was not asked")
            if not ("value" in answer) ^ ("error" in answer):
                raise ValueError("its answer has neither a value nor an error")
        except TimeoutError:
            raise self._killed(f"did not answer {request.get('do')!r} within {seconds:g} s") from None
        except (OSError, EOFError) as error:
            raise self._killed("has ended") from error
        except (ValueError, RecursionError) as error:
            raise self._killed(f"does not keep the protocol: {str(error)[:200]}") from error
        if "error" in answer:
            raise AnswerError(str(answer["error"])[:2000])
        return answer["value"]

    def close(self) -> None:
        """Kill the program and all that it started, and remove its folder."""
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._stderr.close()
        remove_folder(self._folder)

    # --- inside ----------------------------------------------------------------------------------

    def _send(self, data: bytes, until: float) -> None:
        view = memoryview(data)
        while view:
            _wait(self._to, select.POLLOUT, until)
            view = view[os.write(self._to, view[:_PIECE]) :]

    def _line(self, until: float) -> bytes:
        """The next line; what comes after it is kept."""
        pieces, size = [self._rest], len(self._rest)
        while b"\n" not in pieces[-1]:
            _wait(self._from, select.POLLIN, until)
            piece = os.read(self._from, _PIECE)
            if not piece:
                raise EOFError
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST:
                raise ValueError(f"its answer is longer than {LONGEST} bytes")
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line

    def _killed(self, what: str) -> InfraError:
        code = self._process.poll()
        said = redact(self._stderr.text()[-500:].strip())
        self.close()
        told = f"{what} (code {code})" if code is not None else what
        return InfraError(
            f"{self._name} {told}.",
            f"It said: {said}" if said else "Start it by hand and look at what it says.",
        )


def _wait(descriptor: int, event: int, until: float) -> None:
    """Until the pipe is ready, or closed at its other end; TimeoutError when it is not by then."""
    there = select.poll()  # not select(), which knows no descriptor above 1,023
    there.register(descriptor, event)
    if not there.poll(max(0.0, until - time.monotonic()) * 1000):
        raise TimeoutError
