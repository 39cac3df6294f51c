"""Running MCP servers with a folder each, kept at the end of a list of calls."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from turnwise.envs.replaying import ReplayedWorld
from turnwise.errors import InfraError
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.mcp_client import McpAnswer, McpConnection, Server, StdioServer, in_folder
from turnwise.tools.owner import make_folder
from turnwise.tools.sandbox.reap import reap_once

ROOT = "/work"
"""Path that the model is told instead of the folder's true place, so that nothing depends on it."""


class LiveServer(ReplayedWorld[ToolCall, McpAnswer]):
    """One server and its folder. ``prepare`` fills the empty folder of a task.

    ``keeps_memory`` says that going back takes a server started anew too, not only a folder made anew.
    """

    def __init__(
        self, server: Server, prepare: Callable[[Task, Path], None], *, keeps_memory: bool, timeout: float
    ) -> None:
        reap_once()
        self.folder = make_folder("mcp").resolve()
        self._server = in_folder(server, self.folder) if isinstance(server, StdioServer) else server
        self._prepare, self._keeps_memory, self._timeout = prepare, keeps_memory, timeout
        self._connection: McpConnection | None = None

    def close(self) -> None:
        self._disconnect()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _begin(self, task: Task) -> Json:
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self._prepare(task, self.folder)
        if self._keeps_memory:
            self._disconnect()
        return task.id

    def _do(self, act: ToolCall) -> McpAnswer:
        """Return the server's answer, an error too."""
        if self._connection is None:
            self._connection = McpConnection(self._server, timeout=self._timeout)
        try:
            answer = self._connection.call(ToolCall(act.name, _outside(act.arguments, self.folder)))
        except ToolError as error:
            answer = McpAnswer(str(error))
        except InfraError:
            self._disconnect()
            raise
        return answer._replace(text=answer.text.replace(str(self.folder), ROOT))

    def _heard(self, answer: McpAnswer) -> Json:
        return [answer.text, *(hashlib.sha256(picture.data).hexdigest() for picture in answer.pictures)]

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
