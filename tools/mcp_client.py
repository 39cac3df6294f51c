"""Tools of any Model Context Protocol server, over stdio or HTTP, as Turnwise tools.

The official SDK is asynchronous; here it runs on one background thread, so that an environment calls a tool
as it calls a function. What the server says is data: it is returned or raised as text, never acted upon.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextlib
import functools
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

from turnwise.doors import without_token
from turnwise.errors import InfraError
from turnwise.extras import needing
from turnwise.fault import Blame, Party, of_rpc
from turnwise.secrets import redact, resolve
from turnwise.tools.core import Json, Tool, ToolCall, ToolError, ToolSpec
from turnwise.tools.owner import mark
from turnwise.tools.schema import tool_of_schema
from turnwise.tools.tail import Tail

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp_types import CallToolResult

Result = TypeVar("Result")
_MOST_PAGES = 100
_HTTP_S, _LISTEN_S = 30.0, 300.0  # a server may keep a stream of events open
_MOST_TOOLS = 1000
_LONGEST_SCHEMA = 4000  # characters of a schema that is told and not checked
_LARGEST_PICTURE = 4 * 2**20
_CLOSED, _TIMED_OUT = -32000, -32001  # the SDK's codes, which servers use for errors of their own too


@dataclass(frozen=True)
class StdioServer:
    """A server that is started as a process. ``env`` is added to a small safe set, not to the whole of ours."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None


@dataclass(frozen=True)
class HttpServer:
    """A server that runs already, at the address of its streamable HTTP endpoint.

    ``headers`` go with every request, such as ``{"Authorization": "Bearer TOKEN"}``; a token may also stand in the
    address, ``http://:TOKEN@host:8765/mcp``.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


Server: TypeAlias = StdioServer | HttpServer


class McpPicture(NamedTuple):
    """A picture that a tool returned, encoded as ``media_type``."""

    data: bytes
    media_type: str


class McpAnswer(NamedTuple):
    """The answer of a tool: its text, its structured content if it gave some, and its pictures.

    The text has a line for each picture, for those who cannot see it.
    """

    text: str
    structured: Json = None
    pictures: tuple[McpPicture, ...] = ()


class McpConnection:
    """A connection to one server. Use it as a context manager, or :meth:`close` it.

    Args:
        server: where the server is.
        timeout: seconds that connecting, and each call, may take.

    Raises:
        InfraError: the server cannot be reached, has died, or takes too long.
        MissingDependencyError: the ``mcp`` package is not installed.
    """

    def __init__(self, server: Server, *, timeout: float = 30.0) -> None:
        with needing("a connection to an MCP server"):
            import mcp as _mcp  # noqa: F401  (tried here, not in the background)
        self.server = server
        self.timeout = timeout
        self._stderr = Tail()
        self._loop = _background(os.getpid())
        self._stop = asyncio.Event()
        self._ready: concurrent.futures.Future[Client] = concurrent.futures.Future()
        self._task = asyncio.run_coroutine_threadsafe(self._hold(), self._loop)
        try:
            self._client = self._ready.result(timeout)
        except BaseException as error:
            failed = self._failed("cannot be reached", error)
            self.close()
            raise failed from error
        self.instructions: str = self._client.instructions or ""

    def specs(self) -> tuple[ToolSpec, ...]:
        """List the tools that the server offers, in its own order."""
        found: list[ToolSpec] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = self._wait(self._client.list_tools(cursor=cursor), "does not list its tools")
            found += (
                ToolSpec(one.name, one.description or "", _object(one.input_schema)) for one in page.tools
            )
            if len(found) > _MOST_TOOLS:
                raise self._failed("offers too many tools", ValueError(f"more than {_MOST_TOOLS}"))
            cursor = page.next_cursor
            if not cursor:
                break
        return tuple(found)

    def tools(self) -> tuple[Tool, ...]:
        """The server's tools; arguments are checked against their schemas before they are sent.

        Where a schema is none, its text is in the description and nothing is checked.

        Raises:
            InfraError: the server does not answer.
        """
        return tuple(_tool(spec, functools.partial(self._run, spec.name)) for spec in self.specs())

    def call(self, call: ToolCall) -> McpAnswer:
        """Call a tool.

        Raises:
            ToolError: the server says that the call went wrong, or its answer has no form that can be read; the text
                is the server's. Both may be the work of whoever called, so neither is a fault of the world.
            InfraError: the server did not answer.
        """
        from mcp import MCPError
        from pydantic import ValidationError

        began = time.monotonic()
        try:
            done = self._wait(
                self._client.call_tool(call.name, dict(call.arguments), read_timeout_seconds=self.timeout),
                f"did not answer {call.name!r}",
            )
        except InfraError as error:
            cause = error.__cause__
            if isinstance(cause, MCPError):
                blame = self._blame(cause, time.monotonic() - began)
                if blame.party is Party.AGENT:
                    raise ToolError(blame.said[:2000]) from None
            if isinstance(cause, ValidationError):
                raise ToolError(f"The server's answer to {call.name} cannot be read.") from None
            raise
        answer = _answer(done)
        if done.is_error:
            raise ToolError(answer.text or f"{call.name} failed.")
        return answer

    def close(self) -> None:
        """End the connection; a server that was started here ends with it."""
        self._loop.call_soon_threadsafe(self._stop.set)
        try:
            self._task.result(self.timeout)
        except (Exception, concurrent.futures.CancelledError):  # noqa: BLE001  (a server that ends badly has ended)
            self._task.cancel()
        self._stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ----------------------------------------------------------------------------------

    async def _hold(self) -> None:
        """Keep the connection open. One task enters and leaves it, as the SDK demands."""
        from mcp import Client, StdioServerParameters, stdio_client

        server: Any
        if isinstance(self.server, StdioServer):
            command, *arguments = map(resolve, self.server.command)
            env = {name: resolve(value) for name, value in self.server.env.items()} | mark()
            how = StdioServerParameters(
                command=command,
                args=arguments,
                env=env,
                cwd=self.server.cwd,
                encoding_error_handler="replace",
            )
            server = _readable(stdio_client(how, self._stderr.file))
        else:
            server = _over_http(self.server)
        try:
            async with Client(server, read_timeout_seconds=self.timeout) as client:
                # What a tool returns is told as it is, also where it is not what the server promised.
                client.session.validate_tool_result = _taken_as_it_is
                self._ready.set_result(client)
                await self._stop.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    def _blame(self, error: MCPError, seconds: float) -> Blame:
        """Assign the blame for an error: it is the server's answer, or the SDK's word for a server that is gone or
        silent."""
        silent = error.code == _TIMED_OUT and seconds >= self.timeout
        gone = error.code == _CLOSED and not self._is_alive()
        return of_rpc(str(error), silent=silent, gone=gone)

    def _is_alive(self) -> bool:
        from mcp import MCPError

        try:
            self._wait(self._client.session.list_tools(), "is gone")
        except InfraError as error:
            return isinstance(error.__cause__, MCPError) and error.__cause__.code not in (_CLOSED, _TIMED_OUT)
        return True

    def _run(self, name: str, /, **arguments: Json) -> str:
        return self.call(ToolCall(name, arguments)).text

    def _wait(self, work: Coroutine[Any, Any, Result], failure: str) -> Result:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(self.timeout + 5.0)
        except Exception as error:
            future.cancel()
            raise self._failed(failure, error) from error

    def _failed(self, what: str, error: BaseException) -> InfraError:
        where = self.server.url if isinstance(self.server, HttpServer) else " ".join(self.server.command)
        said = self._stderr.text()[-500:].strip()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        said = redact(said)
        cause = redact(f"The MCP server {where!r} {what}: {type(error).__name__} {error}".strip())
        return InfraError(cause, f"It said: {said}" if said else "Start it by hand and look at what it says.")


@contextlib.asynccontextmanager
async def _over_http(server: HttpServer) -> AsyncIterator[Any]:
    """The SDK's transport, with the server's headers."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    url, token = without_token(resolve(server.url))
    headers = token | {name: resolve(value) for name, value in server.headers.items()}
    timeout = httpx2.Timeout(_HTTP_S, read=_LISTEN_S)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


async def _taken_as_it_is(name: str, result: CallToolResult) -> None:
    pass


@contextlib.asynccontextmanager
async def _readable(transport: contextlib.AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    """A transport whose messages with half a surrogate pair are read too; the half is U+FFFD.

    The SDK's parser refuses such a line, and the request that it answers would wait for nothing.
    """
    import anyio

    async def pass_on() -> None:
        async with sender:
            async for item in read:
                await sender.send(_mended(item) if isinstance(item, Exception) else item)

    async with transport as (read, write), anyio.create_task_group() as tasks:
        sender, receiver = anyio.create_memory_object_stream[Any](0)
        tasks.start_soon(pass_on)
        yield receiver, write
        receiver.close()
        tasks.cancel_scope.cancel()


def _mended(error: Exception) -> Any:
    """The message of a line that could not be parsed for its text alone; else the error, as it came."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return error
    line = error.errors(include_url=False)[0]["input"]
    try:
        whole = json.dumps(json.loads(line), ensure_ascii=False)
        text = whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except (ValueError, TypeError, RecursionError):
        return error


def _tool(spec: ToolSpec, run: Callable[..., str]) -> Tool:
    try:
        return tool_of_schema(spec, run)
    except ValueError:
        told = json.dumps(dict(spec.parameters), ensure_ascii=False, default=str)[:_LONGEST_SCHEMA]
        about = f"{spec.description}\nIts arguments, as the server describes them: {told}".strip()
        return tool_of_schema(ToolSpec(spec.name, about, {"type": "object", "properties": {}}), run)


def _object(schema: Mapping[str, Json]) -> dict[str, Json]:
    given = {key: value for key, value in schema.items() if value is not None}
    return {"type": "object", "properties": {}, **given}


def _answer(result: CallToolResult) -> McpAnswer:
    parts: list[str] = []
    pictures: list[McpPicture] = []
    for block in result.content:
        match block.type:
            case "text":
                parts.append(block.text)
            case "resource":
                parts.append(getattr(block.resource, "text", f"[{block.resource.uri}]"))
            case "resource_link":
                parts.append(f"[{block.uri}]")
            case "image" if (data := _decoded(block.data)) is not None:
                pictures.append(McpPicture(data, block.mime_type))
                parts.append(f"[image: {block.mime_type}]")
            case _:
                parts.append(f"[{block.type}: {block.mime_type}]")
    structured = result.structured_content
    if not parts and structured is not None:
        parts.append(json.dumps(structured, ensure_ascii=False))
    return McpAnswer("\n".join(parts), structured, tuple(pictures))


def _decoded(data: str) -> bytes | None:
    """The bytes of base64; None where it is none, or longer than a picture may be."""
    if len(data) > _LARGEST_PICTURE * 4 // 3 + 4:
        return None
    try:
        return base64.b64decode(data, validate=True) or None
    except ValueError:
        return None


@functools.cache
def _background(pid: int) -> asyncio.AbstractEventLoop:
    """The loop of this process's thread for connections; a forked child begins its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="turnwise-mcp", daemon=True).start()
    return loop


def in_folder(server: StdioServer, folder: Path) -> StdioServer:
    """The same server with ``{folder}`` in its command and environment filled in, started there.

    >>> in_folder(StdioServer(("serve", "--root", "{folder}")), Path("/tmp/x")).command
    ('serve', '--root', '/tmp/x')
    """
    command = tuple(part.replace("{folder}", str(folder)) for part in server.command)
    env = {name: value.replace("{folder}", str(folder)) for name, value in server.env.items()}
    return StdioServer(command, env, server.cwd or str(folder))
