"""Applications of others: a command starts them, a folder holds their state."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from turnwise.envs.web.site import Visit
from turnwise.errors import InfraError
from turnwise.secrets import public_environment
from turnwise.tasks.core import Json, Task
from turnwise.tools.owner import make_folder, mark
from turnwise.tools.sandbox.reap import reap_once

_POLL = 0.02  # seconds between two tries to reach an application that starts


class Folder(NamedTuple):
    """The files of an application's state, by path."""

    files: tuple[tuple[str, bytes], ...] = ()

    def text(self, path: str) -> str:
        """A file's text; empty where there is no such file."""
        return dict(self.files).get(path, b"").decode("utf-8", "replace")

    def json(self, path: str) -> Json:
        """A file's JSON value; None where there is no such file."""
        text = self.text(path)
        return json.loads(text) if text else None


@dataclass(frozen=True)
class Command:
    """A web application that a command starts, once for each environment.

    In ``arguments``, ``{port}`` stands for a free port of 127.0.0.1 and ``{state}`` for a folder in which the
    application keeps *all* that must outlive a restart, written before it answers. ``prepare(task, folder)``
    puts the task's initial state there. The application is up once ``ready`` is answered.
    """

    arguments: tuple[str, ...]
    ready: str = "/"
    prepare: Callable[[Task, Path], None] | None = None
    environment: Mapping[str, str] | None = None
    patience: float = 20.0  # seconds to start

    def begin(self, task: Task) -> Visit:
        visit = CommandVisit(self)
        try:
            if self.prepare is not None:
                self.prepare(task, visit.folder)
            visit.start()
        except BaseException:
            visit.close()
            raise
        return visit


class CommandVisit:
    """A running application and its folder."""

    def __init__(self, command: Command) -> None:
        reap_once()
        self.folder = make_folder("web")
        self.port = _free_port()
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookies(self) -> Mapping[str, str]:
        return {}

    @property
    def state(self) -> Folder:
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return Folder(tuple((str(path.relative_to(self.folder)), path.read_bytes()) for path in found))

    def capture(self) -> Folder:
        return self.state

    def revive(self, captured: Folder) -> None:
        """Put the folder back and start the application again, unless nothing differs."""
        if captured == self.state:
            return
        self._stop()
        shutil.rmtree(self.folder)
        for name, data in captured.files:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.folder.mkdir(exist_ok=True)
        self.start()

    def close(self) -> None:
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the application and wait until it answers.

        Raises:
            InfraError: it ends, or does not answer in time.
        """
        values = {"{port}": str(self.port), "{state}": str(self.folder)}
        arguments = [_filled(argument, values) for argument in self._command.arguments]
        with tempfile.TemporaryFile() as log:
            try:
                self._process = process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**public_environment(), **(self._command.environment or {}), **mark()},
                    start_new_session=True,
                )
            except OSError as error:
                raise InfraError(f"{arguments[0]} does not start: {error}", "Check the command.") from error
            deadline = time.monotonic() + self._command.patience
            while not self._answers():
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    said = log.read()[-500:].decode("utf-8", "replace").strip()
                    raise InfraError(
                        f"The application {arguments[0]} does not answer. It said: {said or 'nothing'}",
                        "Run the command by hand with a port and an empty folder.",
                    )
                time.sleep(_POLL)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.origin + self._command.ready, timeout=2):
                return True
        except urllib.error.HTTPError as answer:
            return answer.code < 500
        except OSError:
            return False

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _filled(argument: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        argument = argument.replace(name, value)
    return argument


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
