"""One agent's browser session: observe, act, and return to an earlier state.

All public methods block; they may be called from any thread, but one at a time. Targets of actions are the ids of
the last look (``e7``), or a visible name where only one thing has it. Whatever the agent or the page did
wrong is a ToolError, and the session can be used on; an InfraError means that the browser is gone.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from collections.abc import Coroutine, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urljoin

from turnwise.errors import InfraError
from turnwise.tools.browser.looking import Look, Thing, View, look_at, read_nodes
from turnwise.tools.browser.pool import Chromium
from turnwise.tools.browser.tab import Hung, Tab
from turnwise.tools.browser.tree import INTERACTIVE, Ids, Node
from turnwise.tools.browser.window import BrowserWindow, WindowMoment
from turnwise.tools.core import ToolError

Direction: TypeAlias = Literal["up", "down", "top", "bottom"]
Result = TypeVar("Result")

_ID = re.compile(r"e\d+")


class SessionSnapshot(NamedTuple):
    """A session as it can be opened again, by this one or another."""

    window: WindowMoment
    ids: tuple[tuple[tuple[str, str, int], int], ...]


def lease(browser: Chromium, origin: str) -> Session:
    """A session of its own, which reaches ``origin`` (``http://127.0.0.1:8000``) and nothing else.

    Raises:
        MissingDependencyError: there is no Chromium.
        InfraError: it does not start.
    """
    browser.start()
    session = Session(browser, origin)
    session.begin()
    return session


class Session:
    """One agent's browser. Made by :func:`lease`."""

    def __init__(self, browser: Chromium, origin: str) -> None:
        self.origin = origin
        self._browser = browser
        self._window = BrowserWindow(browser, origin)
        self._open = False
        self._ids: Ids = {}
        self._nodes: dict[str, Node] | None = None  # None: the page may have changed since the last look

    # --- looking ---------------------------------------------------------------------------------

    def look(self, kind: Look = "tree") -> View:
        """The open tab."""
        return self._do(self._look(kind))

    def ask(self, expression: str) -> Any:
        """A JavaScript expression's value, computed apart from the page's own scripts."""
        return self._do(self._tab.ask(expression))

    @property
    def address(self) -> str:
        """Of the open tab, within the origin."""
        return self._window.path(self._tab.address)

    def nodes(self) -> tuple[Node, ...]:
        """Nodes that can be acted on."""
        return tuple(self._do(self._fresh()).values())

    # --- acting ----------------------------------------------------------------------------------

    def goto(self, address: str) -> None:
        """Open an address within the origin.

        Raises:
            ToolError: it lies outside.
        """
        try:
            wanted = urljoin(f"{self.origin}/", address.strip())
            allowed = self._window.allowed(wanted)
        except ValueError:
            allowed, wanted = False, ""
        if not allowed:
            raise ToolError(f"{address[:100]!r} is outside of this site: only its own pages can be opened.")
        self._act(self._window.open(wanted))

    def click(self, target: str) -> None:
        """Click a thing."""
        self._act(self._click(target))

    def click_css(self, selector: str) -> None:
        """Click the element that a CSS selector finds (for scripts that know the page)."""
        self._act(self._click_css(selector))

    def fill(self, target: str, text: str, *, submit: bool = False) -> None:
        """Replace a field's text; ``submit`` presses Enter then."""
        self._act(self._fill(target, text, submit))

    def fill_css(self, selector: str, text: str, *, submit: bool = False) -> None:
        """:meth:`fill` for scripts that know the page."""
        self._act(self._fill_css(selector, text, submit))

    def select(self, target: str, option: str) -> None:
        """Choose an option of a list by its label."""
        self._act(self._select(target, option))

    def press(self, key: str, target: str = "") -> None:
        """Press a key, on a thing or where the focus is."""
        self._act(self._press(key, target))

    def scroll(self, direction: Direction) -> None:
        """Scroll the page."""
        self._act(self._scroll(direction))

    def back(self) -> None:
        """Open the address before this one."""
        self._act(self._back())

    def switch(self, number: int) -> None:
        """Open another tab, counted from 1."""
        count = len(self._window.tabs)
        if not 1 <= number <= count:
            raise ToolError(f"There is no tab {number}. Tabs: 1 to {count}.")
        self._window.active, self._nodes = number - 1, None

    # --- moments ---------------------------------------------------------------------------------

    def add_cookie(self, name: str, value: str) -> None:
        """A cookie of the origin that scripts cannot read."""
        self._do(self._window.cookie(name, value))

    def capture(self) -> SessionSnapshot:
        """Everything that this session holds, as a value."""
        return SessionSnapshot(self._do(self._window.capture()), tuple(self._ids.items()))

    def revive(self, moment: SessionSnapshot, *, cookies: Mapping[str, str] | None = None) -> None:
        """Become what was captured; ``cookies`` replace those of the same name."""
        self._act(self._window.revive(moment.window, dict(cookies or {})))
        self._ids = dict(moment.ids)

    def begin(self) -> None:
        """Take a browser context; done by ``lease``."""
        self._open = True
        self._do(self._window.begin())

    def close(self) -> None:
        """Give the context back; what it holds is forgotten."""
        if self._open:
            with contextlib.suppress(InfraError):  # there is nothing left to close
                self._do(self._window.end())
            self._open = False

    def abandon(self) -> None:
        """:meth:`close` without waiting, from any thread (the garbage collector's)."""
        if self._open:
            self._open = False
            self._browser.later(self._window.end())

    # --- on the browser's thread -----------------------------------------------------------------

    @property
    def _tab(self) -> Tab:
        return self._window.tab

    def _act(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            self._do(work)
        finally:
            self._nodes = None

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        if not self._open:
            work.close()
            raise InfraError("The browser session is closed.", "Lease another one.")
        return self._browser.run(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The work; a page that hangs is replaced, and the agent is informed."""
        try:
            return await work
        except Hung as hung:
            self._nodes = None
            address = self._window.path(await self._window.rebuild())
            said = f"The page stopped working ({str(hung)[:100]}) and was closed. Open now: {address}"
            raise ToolError(said) from hung

    async def _click(self, target: str) -> None:
        node = await self._find(target)
        await self._click_place(await self._tab.ask_of(node.backend, "place"), target)

    async def _click_css(self, selector: str) -> None:
        place = await self._tab.ask(f"turnwise.place(document.querySelector({json.dumps(selector)}))")
        await self._click_place(place, selector)

    async def _click_place(self, place: Mapping[str, Any], target: str) -> None:
        _require_no_problem(place, target)
        await self._tab.click_at(place["x"], place["y"])
        await self._window.after()

    async def _fill(self, target: str, text: str, submit: bool) -> None:
        node = await self._find(target)
        ready = await self._tab.ask_of(node.backend, "ready", text)
        await self._fill_ready(ready, target, text, submit)

    async def _fill_css(self, selector: str, text: str, submit: bool) -> None:
        element = f"document.querySelector({json.dumps(selector)})"
        ready = await self._tab.ask(f"turnwise.ready({element}, {json.dumps(text)})")
        await self._fill_ready(ready, selector, text, submit)

    async def _fill_ready(self, ready: Mapping[str, Any], target: str, text: str, submit: bool) -> None:
        _require_no_problem(ready, target)
        if ready["type"]:
            await self._tab.type_text(text)
        if submit:
            await self._tab.enter()
        await self._window.after()

    async def _select(self, target: str, option: str) -> None:
        node = await self._find(target)
        _require_no_problem(await self._tab.ask_of(node.backend, "choose", option), target)
        await self._window.after()

    async def _press(self, key: str, target: str) -> None:
        if target:
            node = await self._find(target)
            await self._tab.send("DOM.focus", {"backendNodeId": node.backend})
        await self._tab.press(key)
        await self._window.after()

    async def _scroll(self, direction: Direction) -> None:
        if not await self._tab.ask(f"turnwise.scroll({json.dumps(direction)})"):
            self._tab.notes.append("The page does not scroll further.")
        await self._window.after()

    async def _back(self) -> None:
        trail = self._tab.trail
        if len(trail) < 2:
            raise ToolError("There is no page before this one.")
        trail.pop()
        await self._window.open(trail[-1])

    async def _look(self, kind: Look) -> View:
        tab, window = self._tab, self._window
        seen = await look_at(tab, kind, self._ids)
        things: tuple[Thing, ...] = ()
        if seen.nodes is not None:
            self._nodes = {node.id: node for node in seen.nodes if node.id}
            things = tuple(Thing(n.id, n.role, n.name, n.value, n.states) for n in self._nodes.values())
        notes = tuple(dict.fromkeys((*window.notes, *tab.notes)))
        window.notes, tab.notes = [], []
        tabs = tuple(self._window.path(other.address) for other in window.tabs)
        address, number = self._window.path(tab.address), window.active + 1
        return View(address, seen.title, seen.text, things, tabs, number, notes, seen.image)

    async def _fresh(self) -> dict[str, Node]:
        if self._nodes is None:
            _, nodes = await read_nodes(self._tab, self._ids)
            self._nodes = {node.id: node for node in nodes if node.id}
        return self._nodes

    async def _find(self, target: str) -> Node:
        """The thing that is meant.

        Raises:
            ToolError: there is none or more than one.
        """
        wanted = " ".join(target.lower().split())
        nodes = await self._fresh()
        if _ID.fullmatch(wanted) and wanted in nodes:
            return nodes[wanted]
        same = [node for node in nodes.values() if node.name.lower() == wanted]
        if len(same) == 1:
            return same[0]
        if same:
            ids = ", ".join(node.id for node in same[:10])
            raise ToolError(f"{target[:60]!r} is the name of {ids}: give an id.")
        names = {node.name.lower(): node for node in nodes.values() if node.name and node.role in INTERACTIVE}
        near = difflib.get_close_matches(wanted[:200], names, n=1)
        hint = f" Did you mean {names[near[0]].id} {names[near[0]].name[:60]!r}?" if near else ""
        raise ToolError(f"There is no {target[:60]!r} on this page.{hint} Give an id such as e1.")


def _require_no_problem(answer: Mapping[str, Any], target: str) -> None:
    if problem := answer.get("problem"):
        raise ToolError(f"{target[:60]!r} {problem}.")
