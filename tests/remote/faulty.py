"""A proxy in front of an engine's server that does to it what networks and machines do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator

from turnwise.agents.remote import own_token
from turnwise.agents.remote.protocol import GENERATE


class FaultyProxy:
    """Passes bytes on, until it is told to misbehave. ``fault`` is what is done to requests from now on:

    ``reset`` closes the connection before a request is passed on; ``cut:N`` closes it after N events of an answer;
    ``short:N`` ends an answer after N events as if it were whole; ``abort:N`` ends it with ``finish_reason: abort``;
    ``freeze:N`` sends nothing after N events. With ``once`` it is done to one request alone.
    """

    def __init__(self, port: int) -> None:
        self.fault, self.once = "", False
        self.requests: list[bytes] = []  # bodies of requests to sample
        self._target = port
        self._loop, self._never = (
            asyncio.new_event_loop(),
            asyncio.Event(),
        )  # a task that nobody holds is collected
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self.name = self.url.removeprefix("http://")
        self._token = own_token._file(
            self._door.getsockname()[1]
        )  # its callers have the token of what stands behind it
        own_token.write_token(self._token, own_token.found_token(f"http://127.0.0.1:{self._target}"))
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._up.wait(30)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._token.unlink()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._pass, sock=self._door))
        self._up.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = OSError, asyncio.IncompleteReadError, asyncio.CancelledError
        with contextlib.suppress(*gone):
            async with _closing(writer):
                while await self._pass_one(reader, writer):
                    pass

    async def _pass_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Pass on one request and its answer; whether the connection stays open."""
        head, body = await _message(reader)
        sampling = GENERATE.encode() in head.split(b"\r\n")[0] and b'"stream":true' in body
        fault = self.fault if sampling else ""
        if sampling:
            self.requests.append(body)
        if fault and self.once:
            self.fault = ""
        if fault == "reset":
            return False
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._target)
        async with _closing(ours):
            ours.write(head.replace(b"keep-alive", b"close") + body)
            kind, _, count = fault.partition(":")
            await self._answer(theirs, writer, kind, int(count or 0))
        return kind not in ("cut", "short", "abort")

    async def _answer(
        self, theirs: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str, count: int
    ) -> None:
        head = await theirs.readuntil(b"\r\n\r\n")
        chunked = b"chunked" in head.lower()
        writer.write(head)
        if not chunked:
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            writer.write(await theirs.readexactly(length))
            await writer.drain()
            return
        events = 0
        while size := int(await theirs.readline(), 16):
            if kind and events == count:
                await self._misbehave(writer, kind)
                return
            data = await theirs.readexactly(size + 2)
            writer.write(b"%x\r\n" % size + data)
            await writer.drain()
            events += data.count(b"data: ")
        writer.write(b"0\r\n" + await theirs.readline())
        await writer.drain()

    async def _misbehave(self, writer: asyncio.StreamWriter, kind: str) -> None:
        if kind == "freeze":
            await self._never.wait()
        if kind == "abort":
            _event(
                writer, b'{"choices":[{"token_ids":[],"logprobs":{"content":[]},"finish_reason":"abort"}]}'
            )
        if kind in ("short", "abort"):
            if kind == "short":
                _event(
                    writer, b'{"choices":[{"token_ids":[],"logprobs":{"content":[]},"finish_reason":"stop"}]}'
                )
            _event(writer, b"[DONE]")
            writer.write(b"0\r\n\r\n")
        await writer.drain()


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    except asyncio.CancelledError:
        writer.transport.abort()  # nobody may be reading what is still to be written
        raise
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _event(writer: asyncio.StreamWriter, text: bytes) -> None:
    data = b"data: " + text + b"\n\n"
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
    return head, await reader.readexactly(int(length)) if length else b""
