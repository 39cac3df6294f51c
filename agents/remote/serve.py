"""Run an engine of this process as a server, until it is told to end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

from aiohttp import web

from turnwise.agents.remote.guard import check_exposure
from turnwise.agents.remote.server import EngineServer
from turnwise.errors import EngineError

END_S = 2.0
"""Seconds that connections may take to close when the server ends."""


def listen(host: str, port: int, token: str) -> socket.socket:
    """A socket on which nobody is answered yet; port 0 is a free one.

    Raises:
        EngineError: the port is taken, or the address lies open without a token.
    """
    check_exposure(host, token)
    try:
        if not 0 <= port < 1 << 16:
            raise OSError("a port is at most 65535")
        return socket.create_server((host, port), reuse_port=False)
    except OSError as error:
        raise EngineError(
            f"Cannot listen on {host}:{port}: {error}.", "Choose another --host or --port."
        ) from error


async def serve(server: EngineServer, door: socket.socket, ready: Callable[[str], None]) -> None:
    """Answer at ``door`` until SIGTERM or SIGINT; ``ready`` is told the URL."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, told.set)
    runner = web.AppRunner(server.app(), handler_cancellation=True, shutdown_timeout=END_S, access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, door).start()
        ready(url_of(door))
        await told.wait()
    finally:
        await runner.cleanup()
        server.engine.close()


def url_of(door: socket.socket) -> str:
    """The URL of what listens there."""
    host, port = door.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
