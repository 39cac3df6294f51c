"""A small OpenAI-compatible server over real HTTP on the loopback interface, answering from a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

Answer = Callable[[dict[str, Any]], web.Response | float]
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


def refused(status: int, message: str = "no", **headers: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


class ChatServer:
    """Answers with ``answers`` in turn, the last one again and again; keeps what it was asked."""

    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.text())
        self.requests.append(asked)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1](asked)
        if isinstance(answer, web.Response):
            return answer
        await asyncio.sleep(answer)
        return refused(500)


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
