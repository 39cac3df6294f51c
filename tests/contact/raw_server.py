"""An HTTP server that says any bytes at all, and may stall, drip or cut the connection."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple


class Raw(NamedTuple):
    """What goes over the wire.

    Attributes:
        data: bytes, head and all.
        then: what happens after them: the connection ends, is reset, stays open without a word, or drips a byte now and then.
    """

    data: bytes
    then: str = "close"


Handler = Callable[[int, Mapping[str, Any]], Raw]
"""From the number of a request and its body to what is said."""


def http(body: bytes | str, status: int = 200, **headers: str) -> Raw:
    """A whole answer; its length is said unless the headers say another one."""
    data = body.encode() if isinstance(body, str) else body
    said = {"Content-Type": "application/json", "Content-Length": str(len(data)), "Connection": "close"}
    said |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items() if value)
    return Raw(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + data)


def as_json(body: Any, status: int = 200, **headers: str) -> Raw:
    """A JSON body."""
    return http(json.dumps(body), status, **headers)


class RawServer:
    """Each address under it has a handler of its own, and counts its requests."""

    def __init__(self) -> None:
        self.address = ""
        self._handlers: list[Handler] = []
        self.asked: list[int] = []

    def at(self, handler: Handler) -> str:
        """An address whose requests this handler answers."""
        self._handlers.append(handler)
        self.asked.append(0)
        return f"{self.address}/{len(self._handlers) - 1}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            number = int(head.split(b" ")[1].split(b"/")[1])
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            body = await reader.readexactly(int(lengths[0].split(b":")[1])) if lengths else b"{}"
            self.asked[number] += 1
            said = self._handlers[number](self.asked[number], json.loads(body))
            writer.write(said.data)
            await writer.drain()
            await self._end(said.then, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    @staticmethod
    async def _end(then: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if then == "reset":
            door: socket.socket = writer.get_extra_info("socket")
            door.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if then == "silence":
            await reader.read()  # until the client has gone
        while then == "drip" and not reader.at_eof():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.close()


@contextmanager
def serve_raw() -> Iterator[RawServer]:
    """The running server, in a thread of its own."""
    server, loop, ready = RawServer(), asyncio.new_event_loop(), threading.Event()

    async def start() -> asyncio.Server:
        made = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        server.address = f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}"
        return made

    def run() -> None:
        asyncio.set_event_loop(loop)
        made = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        made.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
