"""One Chromium per process, started when it is needed and again when it is gone."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import psutil
from playwright.async_api import Browser, BrowserContext, Error, Playwright, async_playwright

from turnwise.errors import InfraError
from turnwise.tools.browser.chromium import FLAGS, UNWANTED, require_chromium
from turnwise.tools.browser.tab import Hung, Tab
from turnwise.tools.browser.threads import LoopThread
from turnwise.tools.owner import mark
from turnwise.tools.sandbox.reap import reap_once

if TYPE_CHECKING:
    from collections.abc import Coroutine

VIEWPORT = {"width": 1024, "height": 768}
NOWHERE = "http://127.0.0.1:9"
"""The proxy of everything that is not a session's origin; nothing listens there."""

_LONGEST = 60.0  # seconds for any one request to the browser
_STARTING = 180.0  # and for its start, which on a busy machine takes long
_CLEANING = 5.0  # and for the cleaning of a context, whose page may hang
_IDLE = 16  # cleaned contexts that are kept, of all origins
_SPARE = 1 << 30  # bytes of the machine's memory below which none is kept

Result = TypeVar("Result")


class Clean(NamedTuple):
    """A clean browser context with one empty tab."""

    context: BrowserContext
    tab: Tab


class Chromium:
    """The browser's process, its thread, and the contexts that wait to be used again."""

    def __init__(self) -> None:
        self._thread = LoopThread("turnwise-browser")
        self._pid = os.getpid()
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._idle: list[tuple[str, Clean]] = []  # with their origins, the oldest first

    def run(self, work: Coroutine[Any, Any, Result], seconds: float = _LONGEST) -> Result:
        """Do something on the browser's thread.

        Raises:
            InfraError: the browser is gone or does not answer.
        """
        try:
            return self._thread.run(work, seconds)
        except TimeoutError as error:
            raise InfraError(
                f"The browser does not answer: {error}.", "Nothing to do: it is started again."
            ) from error
        except Error as error:
            cause = str(error).partition("\n")[0]
            raise InfraError(f"The browser failed: {cause}", "Nothing to do: it is started again.") from error

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something on the browser's thread without waiting for it."""
        if self._pid == os.getpid():
            self._thread.later(work)
        else:
            work.close()

    def start(self) -> None:
        """Start Chromium, unless it runs.

        Raises:
            MissingDependencyError: there is no Chromium.
            InfraError: it does not start.
        """
        self.run(self._connected(), _STARTING)

    @property
    def pid(self) -> int:
        """The process id of the running Chromium; 0 if none runs."""
        browser = self._browser
        if browser is None or not browser.is_connected():
            return 0
        return self.run(_process(browser))

    @property
    def contexts(self) -> int:
        """The number of browser contexts, leased or waiting."""
        return len(self._browser.contexts) if self._browser is not None else 0

    def close(self) -> None:
        """Stop Chromium; a later lease starts it again."""
        if self._pid == os.getpid():
            self._thread.run(self._stop(), 20)

    # --- on the browser's thread -----------------------------------------------------------------

    async def context(self, origin: str) -> Clean:
        """A clean context whose traffic goes to ``origin`` only."""
        browser = await self._connected()
        while (place := next((n for n, one in enumerate(self._idle) if one[0] == origin), -1)) >= 0:
            kept = self._idle.pop(place)[1]
            if not kept.tab.crashed:
                return kept
            await self.discard(kept.context)
        context = await browser.new_context(**settings(origin))
        return Clean(context, await Tab(await context.new_page()).attach())

    async def give_back(self, context: BrowserContext, origin: str) -> None:
        """Clean a context for the next episode, or throw it away."""
        if not self._runs(context):
            return
        try:
            async with asyncio.timeout(_CLEANING):
                self._idle.append((origin, await _cleaned(context, origin)))
        except (TimeoutError, Error, Hung):
            await self.discard(context)
        while len(self._idle) > _IDLE or (self._idle and psutil.virtual_memory().available < _SPARE):
            await self.discard(self._idle.pop(0)[1].context)

    async def discard(self, context: BrowserContext) -> None:
        """Throw a context away."""
        if not self._runs(context):
            return
        try:
            async with asyncio.timeout(10):
                await context.close()
        except (TimeoutError, Error):
            await self._stop_browser()  # it holds on to a page that cannot be closed

    def _runs(self, context: BrowserContext) -> bool:
        browser = context.browser
        return browser is not None and browser is self._browser and browser.is_connected()

    async def collect_garbage(self) -> None:
        """Make the pages of waiting contexts drop what nothing refers to, so that memory can be compared."""
        for _, kept in list(self._idle):
            await kept.tab.send("HeapProfiler.collectGarbage")

    async def _connected(self) -> Browser:
        async with self._starting:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            path = require_chromium()
            await asyncio.to_thread(reap_once)
            await self._stop()  # also Playwright's driver, which may be what failed
            _leave_random_alone()
            self._playwright = await async_playwright().start()
            try:
                self._browser = await self._playwright.chromium.launch(
                    executable_path=path,
                    args=list(FLAGS),
                    ignore_default_args=list(UNWANTED),
                    env={**os.environ, **mark()},
                    timeout=1000 * _STARTING,
                )
            except Error as error:
                cause = str(error).partition("\n")[0]
                raise InfraError(
                    f"Chromium ({path}) does not start: {cause}", "`turnwise doctor` says what is missing."
                ) from error
            return self._browser

    async def _stop_browser(self) -> None:
        browser, self._browser = self._browser, None
        self._idle.clear()
        if browser is not None and browser.is_connected():
            try:
                async with asyncio.timeout(10):
                    await browser.close()
            except (TimeoutError, Error):
                return

    async def _stop(self) -> None:
        await self._stop_browser()
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            with contextlib.suppress(Exception):  # its process may be gone
                await playwright.stop()


def _leave_random_alone() -> None:
    """Playwright 1.65 names its calls with letters from the global generator, which is the program's own."""
    with contextlib.suppress(ImportError):
        setattr(import_module("playwright._impl.isomorphic.trace_utils"), "random", Random())  # noqa: B010


def settings(origin: str) -> dict[str, Any]:
    """Playwright's settings of a context whose traffic goes to ``origin`` only."""
    return {
        "viewport": VIEWPORT,
        "locale": "en-US",
        "timezone_id": "UTC",
        "accept_downloads": False,
        "service_workers": "block",
        "reduced_motion": "reduce",
        # `<-loopback>` takes back that loopback bypasses the proxy; the origin is then excepted again.
        "proxy": {"server": NOWHERE, "bypass": f"<-loopback>,{urlsplit(origin).netloc}"},
    }


async def _cleaned(context: BrowserContext, origin: str) -> Clean:
    """The context with nothing but a new tab.

    The new tab is there before the old ones go, so that it shares their process, which is slow to start; storage
    is erased when they are gone, for a page that is closed may still write.
    """
    old = list(context.pages)
    tab = await Tab(await context.new_page()).attach()
    for page in old:
        await page.close()
    await tab.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    await context.clear_cookies()
    return Clean(context, tab)


async def _process(browser: Browser) -> int:
    session = await browser.new_browser_cdp_session()
    try:
        found = await session.send("SystemInfo.getProcessInfo")
    finally:
        await session.detach()
    return next(item["id"] for item in found["processInfo"] if item["type"] == "browser")


_shared: Chromium | None = None
_lock = threading.Lock()


def chromium() -> Chromium:
    """This process's Chromium. A forked child gets one of its own."""
    global _shared
    with _lock:
        if _shared is None or _shared._pid != os.getpid():
            _shared = Chromium()
            atexit.register(_shared.close)
        return _shared
