"""Our tools for others: a set of tools served over the Model Context Protocol, by stdio.

What is served is a :class:`Toolbox`, one per server: an environment's episode is made one by
:mod:`turnwise.envs.mcp.serve`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from turnwise.extras import needing
from turnwise.tools.core import Tool, ToolCall, ToolError, ToolSpec, find_tool

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


class Toolbox(Protocol):
    """Tools with what they share."""

    name: str
    instructions: str  # sent to whoever connects

    def specs(self) -> Sequence[ToolSpec]: ...

    def call(self, call: ToolCall) -> str:
        """The text of the result. Calls come one at a time, on a thread.

        Raises:
            ToolError: the call went wrong; the text is sent to the client as an error.
        """
        ...


class PlainToolbox:
    """A few Python functions as a toolbox."""

    def __init__(self, name: str, tools: Sequence[Tool], instructions: str = "") -> None:
        self.name = name
        self.instructions = instructions
        self._tools = tuple(tools)

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self._tools]

    def call(self, call: ToolCall) -> str:
        tool = find_tool(self._tools, call.name)
        result = tool.function(**tool.validate(call))
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def mcp_server(toolbox: Toolbox) -> Server[Any]:
    """The SDK's server for a toolbox; calls never overlap.

    Raises:
        MissingDependencyError: the ``mcp`` package is not installed.
    """
    with needing("serving tools over MCP"):
        import mcp_types as types
        from mcp.server.lowlevel import Server
    one_at_a_time = threading.Lock()

    def carry_out(call: ToolCall) -> tuple[str, bool]:
        with one_at_a_time:
            try:
                return toolbox.call(call), False
            except ToolError as error:
                return str(error), True

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        offered = [
            types.Tool(name=spec.name, description=spec.description, input_schema=dict(spec.parameters))
            for spec in toolbox.specs()
        ]
        return types.ListToolsResult(tools=offered)

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        text, failed = await asyncio.to_thread(carry_out, ToolCall(params.name, params.arguments or {}))
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)

    return Server(
        toolbox.name,
        instructions=toolbox.instructions or None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_stdio(toolbox: Toolbox) -> None:
    """Serve over this process's standard input and output until the client closes them."""

    async def serve() -> None:
        server = mcp_server(toolbox)
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(serve())
