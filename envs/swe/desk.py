"""The desk: an environment whose world is one sandbox, in which an agent works with a shell and an editor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from turnwise.envs.live import LiveEnv
from turnwise.envs.messages import Message
from turnwise.envs.steps import State
from turnwise.envs.swe import actions
from turnwise.errors import EnvError
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall
from turnwise.tools.sandbox.core import Sandbox, SandboxImage


class DeskEnv(LiveEnv[State]):
    """An environment that owns one sandbox: it starts, copies, restores and ends it, and carries out the tools in it."""

    calls_per_turn: ClassVar[int | None] = 1

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._box: Sandbox | None = None

    @abstractmethod
    def open_sandbox(self, image: SandboxImage) -> Sandbox:
        """A new sandbox with these files."""

    def capture(self) -> SandboxImage:
        return self.sandbox().snapshot()

    def revive(self, captured: object) -> None:
        assert isinstance(captured, SandboxImage)
        if self._box is not None and self._box.image.root != captured.root:
            self.close()
        if self._box is None:
            self._box = self.open_sandbox(captured)
        else:
            self._box.restore(captured)

    def detach(self) -> None:
        self._box = None

    def close(self) -> None:
        """End the sandbox."""
        if self._box is not None:
            self._box.close()
            self._box = None

    def begin(self, image: SandboxImage) -> Sandbox:
        """The sandbox of a new episode; that of the last one is ended."""
        self.close()
        self._box = self.open_sandbox(image)
        return self._box

    def sandbox(self) -> Sandbox:
        """The sandbox of this episode.

        Raises:
            EnvError: there is none any more.
        """
        if self._box is None:
            raise EnvError("The environment was closed.", "Call reset() first.")
        return self._box

    def work(self, name: str, given: Mapping[str, Any]) -> str | None:
        """Carry out a call of a tool that works in the sandbox: what it says; None where it is another tool."""
        box = self.sandbox()
        match name:
            case "shell":
                return actions.run_shell(box, given["command"])
            case "view":
                return actions.run_view(box, given["path"], given["first"], given["last"])
            case "search":
                return actions.run_search(box, given["pattern"], given["path"])
            case "edit":
                return actions.run_edit(box, given["path"], given["old"], given["new"])
            case "create":
                return actions.run_create(box, given["path"], given["text"])
            case _:
                return None

    def call(self, name: str, arguments: Mapping[str, Json]) -> Message:
        """A message that calls a tool."""
        return Message("assistant", "", (ToolCall(name, arguments, f"call_{self.now.turn}"),))
