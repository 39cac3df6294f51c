"""The tabs of one session: opened, rested, returned when they lead outside, rebuilt when they hang.

All methods are coroutines of the browser's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from playwright.async_api import BrowserContext, Error, Page

from turnwise.errors import InfraError
from turnwise.tools.browser.pool import Chromium
from turnwise.tools.browser.tab import PATIENCE, Hung, Tab

TABS = 5
"""Most tabs that a session may have open; more are closed at once."""

_NEW_TAB = 1.0  # seconds within which a tab that a page asked for is there, unless Chromium refused it


class TabMoment(NamedTuple):
    """A tab as it can be opened again: paths, what stands in its fields, scroll, focus, storage."""

    address: str
    trail: tuple[str, ...]
    forms: Mapping[str, Any]


class WindowMoment(NamedTuple):
    """A window as it can be opened again, by this session or another of the same origin."""

    tabs: tuple[TabMoment, ...]
    active: int
    cookies: tuple[Mapping[str, Any], ...]


class BrowserWindow:
    """A browser context and its tabs."""

    def __init__(self, browser: Chromium, origin: str) -> None:
        self.origin = origin
        self.tabs: list[Tab] = []
        self.active = 0
        self.notes: list[str] = []  # what happened, for the agent
        self._browser = browser
        self._context: BrowserContext
        self._adopting: set[asyncio.Task[None]] = set()
        self._arrived = 0  # new tabs since the last rest
        self._arrival = asyncio.Event()

    @property
    def tab(self) -> Tab:
        return self.tabs[self.active]

    async def begin(self) -> None:
        """Take a clean context and open its first tab."""
        self._context, tab = await self._browser.context(self.origin)
        self._only(tab)

    async def open(self, address: str) -> None:
        """Load an address in the open tab."""
        await self.tab.open(address)
        await self.after()

    async def after(self) -> None:
        """Wait for the page to rest, take in new tabs, and leave what lies outside."""
        tab = self.tab
        await tab.rest()
        await self._take_in(tab)
        if self.tab is not tab:
            return  # a new tab, which has come to rest already
        if not self.allowed(tab.address):
            await self._return(tab)
        elif tab.trail[-1:] != [tab.address]:
            tab.trail.append(tab.address)

    async def _take_in(self, tab: Tab) -> None:
        """Wait for the tabs that a page asked for; Chromium may have refused some."""
        asked, tab.windows = tab.windows, 0
        if asked:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_NEW_TAB):
                    while self._arrived < asked:
                        self._arrival.clear()
                        await self._arrival.wait()
        self._arrived = 0
        if self._adopting:
            await asyncio.wait(self._adopting, timeout=PATIENCE)

    async def _return(self, tab: Tab) -> None:
        tab.notes.append("That address is outside of this site or cannot be loaded; it was not opened.")
        await tab.open(tab.trail[-1] if tab.trail else f"{self.origin}/")
        if not self.allowed(tab.address):
            raise InfraError(f"The site {self.origin} does not answer.", "See the site's log.")

    async def rebuild(self) -> str:
        """Throw the context away for one with the same cookies, at the last address that works."""
        old, trail = self._context, self.tab.trail
        cookies: Any = await old.cookies()
        old.remove_listener("page", self._on_page)
        await self._browser.discard(old)
        self._context, tab = await self._browser.context(self.origin)
        if cookies:
            await self._context.add_cookies(cookies)
        for back in range(min(len(trail), 2)):
            self._only(tab)
            self.tab.trail = trail[: len(trail) - 1 - back]
            try:
                await self.open(trail[-1 - back])
            except Hung:
                self._context.remove_listener("page", self._on_page)
                await self.tab.page.close()
                tab = await Tab(await self._context.new_page()).attach()
                continue
            return self.tab.address
        self._only(tab)
        return "an empty page"

    async def cookie(self, name: str, value: str) -> None:
        """Set a cookie of the origin that scripts cannot read."""
        cookies: Any = [self._cookie(name, value)]
        await self._context.add_cookies(cookies)

    async def end(self) -> None:
        """Give the context back, to be cleaned for the next episode."""
        self._context.remove_listener("page", self._on_page)
        self.tabs = []
        await self._browser.give_back(self._context, self.origin)

    def allowed(self, address: str) -> bool:
        """Say whether an address lies within the origin."""
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.netloc}" == self.origin

    def path(self, address: str) -> str:
        """An address as it is shown: within the origin without it, for ports differ from run to run."""
        return (address.removeprefix(self.origin) or "/") if self.allowed(address) else address

    # --- moments ---------------------------------------------------------------------------------

    async def capture(self) -> WindowMoment:
        tabs = [
            TabMoment(
                self.path(tab.address), tuple(map(self.path, tab.trail)), await tab.ask("turnwise.forms()")
            )
            for tab in self.tabs
        ]
        cookies: Any = await self._context.cookies()
        return WindowMoment(tuple(tabs), self.active, tuple(cookies))

    async def revive(self, moment: WindowMoment, cookies: Mapping[str, str]) -> None:
        """Become what was captured; ``cookies`` replace those of the same name."""
        context = self._context
        kept: Any = [cookie for cookie in moment.cookies if cookie["name"] not in cookies]
        kept += [self._cookie(name, value) for name, value in cookies.items()]
        await context.clear_cookies()
        if kept:
            await context.add_cookies(kept)
        while len(self.tabs) > len(moment.tabs):
            await self._forget(self.tabs[-1])
        context.remove_listener("page", self._on_page)
        while len(self.tabs) < len(moment.tabs):
            self.tabs.append(await Tab(await context.new_page()).attach())
        context.on("page", self._on_page)
        for tab, saved in zip(self.tabs, moment.tabs, strict=True):
            await self._reopen(tab, saved)
        self.active, self.notes = moment.active, []

    async def _reopen(self, tab: Tab, saved: TabMoment) -> None:
        storage, address = saved.forms["storage"], urljoin(self.origin, saved.address)
        if any(storage) and not self.allowed(tab.address):
            await tab.open(address)  # storage belongs to an origin, so that one must be open
        if self.allowed(tab.address):
            await tab.ask(f"turnwise.keep({json.dumps(storage)})")
        await tab.open(address)
        if not self.allowed(tab.address):
            raise InfraError(f"{saved.address} cannot be opened again.", "See the site's log.")
        await tab.ask(f"turnwise.refill({json.dumps(saved.forms)})")
        await tab.rest()
        tab.trail, tab.notes = [urljoin(self.origin, path) for path in saved.trail], []

    def _cookie(self, name: str, value: str) -> dict[str, Any]:
        return {"name": name, "value": value, "url": self.origin, "httpOnly": True, "sameSite": "Strict"}

    # --- tabs ------------------------------------------------------------------------------------

    def _only(self, tab: Tab) -> None:
        """Begin with one tab."""
        self.tabs, self.active = [tab], 0
        self._context.on("page", self._on_page)

    def _on_page(self, page: Page) -> None:
        self._arrived += 1
        self._arrival.set()
        task = asyncio.get_running_loop().create_task(self._adopt(page))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, page: Page) -> None:
        """Take in a tab that a page opened."""
        try:
            if len(self.tabs) >= TABS:
                self.notes.append(f"A new tab was closed: {TABS} are open.")
                await page.close()
                return
            tab = Tab(page)
            self.tabs.append(tab)
            await tab.attach()
            await tab.rest()
            if not self.allowed(tab.address):
                self.notes.append("A new tab that leads outside of this site was closed.")
                await self._forget(tab)
                return
        except (Error, Hung):
            self.tabs = [tab for tab in self.tabs if tab.page is not page]
            return
        tab.trail.append(tab.address)
        self.active = self.tabs.index(tab)
        self.notes.append(f"The page opened tab {self.active + 1}.")

    async def _forget(self, tab: Tab) -> None:
        self.tabs.remove(tab)
        self.active = min(self.active, len(self.tabs) - 1)
        await tab.page.close()
