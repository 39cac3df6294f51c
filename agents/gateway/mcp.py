"""The tools of a session's environment over the Model Context Protocol: streamable HTTP, one JSON answer to one request.

The official SDK serves one set of tools per server and port (:mod:`turnwise.tools.mcp_server`); here every session has
tools of its own behind one port, so its few methods are answered directly. Nothing is pushed to clients, which the
protocol leaves to servers.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import turnwise
from turnwise.agents.gateway.actions import ActResult, World, carry_out
from turnwise.agents.gateway.core import RefusedError
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolSpec

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_PARSE, _REQUEST, _METHOD, _PARAMS = -32700, -32600, -32601, -32602


class McpSession:
    """Answers the requests of MCP clients for one world."""

    def __init__(self, world: World, tools: Sequence[Tool], specs: Sequence[ToolSpec]) -> None:
        self._world, self._tools, self._specs = world, tools, specs
        self._calls = itertools.count(1)

    async def answer(self, body: bytearray, parsed: Callable[[bytearray], Awaitable[Json]]) -> Json | None:
        """The answer to one message, or to a list of them, read by ``parsed``; None where it asks for none."""
        try:
            given = await parsed(body)
        except RefusedError as refused:
            return _error(None, _PARSE, refused.message)
        if not isinstance(given, list):
            return await self._one(given)
        answers = [answer for one in given[:100] if (answer := await self._one(one)) is not None]
        return answers or None

    async def _one(self, message: Any) -> Json | None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, _REQUEST, "This is no message of JSON-RPC 2.0.")
        method, key = message.get("method"), message.get("id")
        if key is None or not isinstance(method, str):
            return None  # a notification, or an answer to what was never asked
        params = message.get("params") or {}
        if not isinstance(params, dict):
            return _error(key, _PARAMS, "params must be an object.")
        match method:
            case "initialize":
                return _result(key, self._greeting(params))
            case "ping":
                return _result(key, {})
            case "tools/list":
                return _result(key, {"tools": [_described(spec) for spec in self._specs]})
            case "tools/call":
                return await self._call(key, params)
            case _:
                return _error(key, _METHOD, f"There is no method {method:.60}.")

    def _greeting(self, params: Mapping[str, Any]) -> Json:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "turnwise", "version": turnwise.__version__},
            "instructions": self._world.instructions,
        }

    async def _call(self, key: Json, params: Mapping[str, Any]) -> Json:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return _error(key, _PARAMS, "Give the tool's name, and arguments as an object.")
        call_id = f"call_{next(self._calls)}"
        done = await carry_out(self._world, self._tools, name, arguments, call_id)
        content: list[Json] = [{"type": "text", "text": said(done)}]
        for image in done.images:
            data = base64.b64encode(image.data).decode()
            content.append({"type": "image", "data": data, "mimeType": image.media_type})
        return _result(key, {"content": content, "isError": done.bad_action})


def said(done: ActResult) -> str:
    """Write an action's result as the agent reads it."""
    return f"{done.text}\n[the episode is over: {done.end}]".strip() if done.end else done.text


def _described(spec: ToolSpec) -> Json:
    return {"name": spec.name, "description": spec.description, "inputSchema": dict(spec.parameters)}


def _result(key: Json, value: Json) -> Json:
    return {"jsonrpc": "2.0", "id": key, "result": value}


def _error(key: Json, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}}
