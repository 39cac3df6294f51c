"""Make tasks out of any MCP server.

A subclass names the server, fills a folder for it, says what solves a task and judges what came out; an
example of forty lines is in docs/tools.md. The server's tools are the environment's, and ``finish`` is added.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from turnwise.envs.acting import MOST_CALLS
from turnwise.envs.core import EndReason, Transition
from turnwise.envs.mcp.actions import FINISH, calls_of
from turnwise.envs.mcp.live import LiveServer
from turnwise.envs.mcp.state import McpState
from turnwise.envs.messages import Image, Message, Messages
from turnwise.envs.replaying import ReplayedEnv, WorldPool
from turnwise.tasks.core import Task, digest
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool
from turnwise.tools.mcp_client import McpConnection, Server, StdioServer, in_folder


class McpEnv(ReplayedEnv[McpState, LiveServer]):
    """An environment whose tools are those of an MCP server.

    With ``image`` a tool's pictures are shown, to policies that see; without it they are told as ``[image: image/png]``.
    A tool of the server whose name is one of ours is offered as ``server_NAME``.

    A state is the calls so far, so forks cost nothing until they are stepped; then a server of their own is
    brought to that point by calling again what was called. The server must therefore answer the same to the same.
    """

    server: ClassVar[Server]  # "{folder}" in its command stands for the folder of the task
    offered: ClassVar[tuple[str, ...]] = ()  # names of the tools that are offered; empty: all
    keeps_memory: ClassVar[bool] = True  # False: all that the server knows lies in its folder
    timeout: ClassVar[float] = 30.0
    pool: ClassVar[WorldPool[LiveServer]] = WorldPool()
    turn_limit = 20

    # --- what an author writes -------------------------------------------------------------------

    @classmethod
    def prepare(cls, task: Task, folder: Path) -> None:
        """Fill the empty folder, always in the same way. The model knows it as ``/work``."""

    def judge(self, task: Task, folder: Path, answer: str) -> float:
        """Return how well the task was done, from 0 to 1. Must not change the folder."""
        raise NotImplementedError

    def plan(self, task: Task) -> Sequence[ToolCall]:
        """Calls that solve the task; the last one is ``finish``."""
        raise NotImplementedError

    # --- the contract ----------------------------------------------------------------------------

    def __init__(self, *, image: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._image = image
        offered = _offered(type(self))
        self.tools = (*(one.tool for one in offered), FINISH)
        self._names = {one.tool.spec.name: one.name for one in offered}

    def initial(self, task: Task) -> tuple[McpState, str]:
        return McpState(task.id), task.prompt

    def transition(self, state: McpState, action: Message) -> Transition[McpState]:
        calls = calls_of(action, self.tools)
        told: list[Message] = []
        role = "tool" if action.tool_calls else "user"
        for call in calls:
            try:
                arguments = find_tool(self.tools, call.name).validate(call)
            except ToolError as error:
                told.append(Message(role, str(error), tool_call_id=call.id))
                continue
            live = self._at(state)
            if call.name == "finish":
                score = float(self.judge(self.task, live.folder, arguments["answer"]))
                told.append(Message(role, "Finished.", tool_call_id=call.id))
                end = EndReason.SOLVED if score >= 1.0 else EndReason.FAILED
                return Transition(state._replace(heard="finished"), Messages(told), {"outcome": score}, end)
            theirs = replace(call, name=self._names[call.name])
            answer = live.act(theirs)
            images = tuple(Image(*picture) for picture in answer.pictures if self._image)
            state = McpState(state.task, live.place.acts, live.place.heard)
            told.append(
                Message(role, self._cut(answer.text) or "(nothing)", tool_call_id=call.id, images=images)
            )
        return Transition(state, Messages(told))

    def gold(self, state: McpState) -> Message:
        """The next call of the plan, as far as exactly the plan was followed so far."""
        plan = self.plan(self.task)
        call = plan[min(len(state.calls), len(plan) - 1)]
        return Message("assistant", "", (ToolCall(call.name, call.arguments, f"call_{len(state.calls)}"),))

    def state_key(self, state: McpState) -> str:
        calls = [[call.name, dict(call.arguments)] for call in state.calls]
        return digest(state.task, calls, state.heard)

    # --- inside ----------------------------------------------------------------------------------

    def _at(self, state: McpState) -> LiveServer:
        live = self.borrowed()
        live.go_to(self.task, state.calls, state.heard)
        return live

    @classmethod
    def world_kind(cls) -> type[McpEnv]:
        return cls

    @classmethod
    def start_world(cls) -> LiveServer:
        return LiveServer(cls.server, cls.prepare, keeps_memory=cls.keeps_memory, timeout=cls.timeout)

    def _cut(self, text: str) -> str:
        over = len(text) - self.observation_limit // MOST_CALLS
        return text if over <= 0 else f"{text[:-over]}\n[… {over} characters cut]"


class OfferedTool(NamedTuple):
    """A tool as the model knows it, and its name at the server."""

    tool: Tool
    name: str


@functools.cache
def _offered(kind: type[McpEnv]) -> tuple[OfferedTool, ...]:
    """The tools that the server offers, asked for once in a process."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="turnwise-mcp-") as name:
        server = kind.server
        if isinstance(server, StdioServer):
            server = in_folder(server, Path(name))
        with McpConnection(server, timeout=kind.timeout) as connection:
            tools = connection.tools()
    by_name: Mapping[str, Tool] = {one.spec.name: one for one in tools}
    chosen = tuple(find_tool(tools, name) for name in kind.offered) if kind.offered else by_name.values()
    return _with_own_names(chosen, {FINISH.spec.name})


def _with_own_names(tools: Iterable[Tool], taken: set[str]) -> tuple[OfferedTool, ...]:
    """Tools whose names differ from those ``taken``: ``finish`` becomes ``server_finish``."""
    tools = tuple(tools)
    known = taken | {one.spec.name for one in tools}
    found: list[OfferedTool] = []
    for one in tools:
        name = own = one.spec.name
        while own in taken or (own != name and own in known):
            own = f"server_{own}"
        taken = taken | {own}
        found.append(OfferedTool(replace(one, spec=replace(one.spec, name=own)), name))
    return tuple(found)
