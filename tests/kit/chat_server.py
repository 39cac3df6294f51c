"""A small OpenAI-compatible server over real HTTP on the loopback interface, answering from a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiohttp import web


class Endless(NamedTuple):
    """A body without end: its first bytes, then this part again and again, so many seconds apart."""

    head: bytes = b""
    part: bytes = b"x" * 65536
    seconds: float = 0.0
    status: int = 200


Answer = Callable[[dict[str, Any]], web.Response | Endless | float]
"""What to answer to a request; a number is how many seconds to hang."""


def said(content: str = "", calls: list[tuple[str, str]] | None = None) -> web.Response:
    """A completion that says ``content`` and calls tools, given as (name, arguments text)."""
    tool_calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls or [])
    ]
    message = {"role": "assistant", "content": content, **({"tool_calls": tool_calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response(
        {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    )


def holding(said: Any, **around: Any) -> web.Response:
    """A completion with any message, and any fields around it."""
    return web.json_response({"choices": [{"index": 0, "message": said, **around}]})


def body(data: bytes | str, status: int = 200, **headers: str) -> web.Response:
    """Any bytes, said to be JSON."""
    data = data.encode() if isinstance(data, str) else data
    return web.Response(body=data, status=status, content_type="application/json", headers=headers)


def refused(status: int, message: str = "no", **headers: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


class ChatServer:
    """Answers with ``answers`` in turn, the last one again and again; keeps what it was asked."""

    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.requests: list[dict[str, Any]] = []
        self.url = ""
        self.sent = 0  # bytes of endless bodies
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.text())
        self.requests.append(asked)
        self.headers.append(dict(request.headers))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1](asked)
        if isinstance(answer, web.Response):  # which can be sent once
            return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
        if isinstance(answer, Endless):
            return await self._stream(request, answer)
        await asyncio.sleep(answer)
        return refused(500)

    async def _stream(self, request: web.Request, answer: Endless) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(answer.head)
        while True:  # until the client has gone, which raises
            await response.write(answer.part)
            self.sent += len(answer.part)
            await asyncio.sleep(answer.seconds)


@contextmanager
def serve(*answers: Answer) -> Iterator[ChatServer]:
    """A running server, in a thread of its own."""
    server = ChatServer(list(answers))
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
