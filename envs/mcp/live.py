"""Running MCP servers with a folder each, kept at the end of a list of calls."""

from __future__ import annotations

import atexit
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from turnwise.errors import InfraError
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.mcp_client import McpAnswer, McpConnection, Server, StdioServer, in_folder
from turnwise.tools.owner import make_folder
from turnwise.tools.sandbox.reap import reap_once

ROOT = "/work"
"""Path that the model is told instead of the folder's true place, so that nothing depends on it."""


class LiveServer:
    """One server and its folder. ``prepare`` fills the empty folder of a task.

    A server can do what cannot be undone, so there is one way back only: a folder made anew, and the calls so
    far once more. ``keeps_memory`` says that the server itself must be started anew too.
    """

    def __init__(
        self, server: Server, prepare: Callable[[Task, Path], None], *, keeps_memory: bool, timeout: float
    ) -> None:
        reap_once()
        self.folder = make_folder("mcp").resolve()
        self._server = in_folder(server, self.folder) if isinstance(server, StdioServer) else server
        self._prepare, self._keeps_memory, self._timeout = prepare, keeps_memory, timeout
        self._connection: McpConnection | None = None
        self._at: tuple[str, tuple[ToolCall, ...]] | None = None

    def go_to(self, task: Task, calls: Sequence[ToolCall]) -> None:
        """Bring the server to where these calls lead.

        Raises:
            InfraError: it does not answer.
        """
        wanted = (task.id, tuple(calls))
        if self._at == wanted:
            return
        self._at = None
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self._prepare(task, self.folder)
        if self._keeps_memory:
            self._disconnect()
        self._at = (task.id, ())
        for call in wanted[1]:
            self.call(call)

    def call(self, call: ToolCall) -> McpAnswer:
        """Return the server's answer, an error too.

        Raises:
            InfraError: it does not answer.
        """
        assert self._at is not None
        (task, before), self._at = self._at, None  # until it has answered nobody knows where it is
        if self._connection is None:
            self._connection = McpConnection(self._server, timeout=self._timeout)
        try:
            answer = self._connection.call(ToolCall(call.name, _outside(call.arguments, self.folder)))
        except ToolError as error:
            answer = McpAnswer(str(error))
        except InfraError:
            self._disconnect()
            raise
        self._at = (task, (*before, call))
        return answer._replace(text=answer.text.replace(str(self.folder), ROOT))

    def close(self) -> None:
        self._disconnect()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _outside(value: Json, folder: Path) -> Json:
    """Paths as the model says them, as they are on this machine."""
    if isinstance(value, str):
        inside = value == ROOT or value.startswith(f"{ROOT}/")
        return f"{folder}{value.removeprefix(ROOT)}" if inside else value
    if isinstance(value, list):
        return [_outside(item, folder) for item in value]
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: _outside(item, folder) for key, item in value.items()}
    return value


class ServerPool:
    """Servers that run and that no environment uses just now; starting one takes a second."""

    def __init__(self) -> None:
        self._idle: dict[type, list[LiveServer]] = {}
        self._lock = threading.Lock()
        atexit.register(self.close)

    def take(self, kind: type, make: Callable[[], LiveServer]) -> LiveServer:
        with self._lock:
            idle = self._idle.get(kind)
            found = idle.pop() if idle else None
        return found or make()

    def give(self, kind: type, server: LiveServer) -> None:
        with self._lock:
            self._idle.setdefault(kind, []).append(server)

    def close(self) -> None:
        """Stop all that are idle."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for servers in idle.values():
            for server in servers:
                server.close()
