"""One tab over the DevTools protocol: knowing when it rests, asking it things, mouse and keyboard.

All methods are coroutines of the browser's loop.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from playwright.async_api import CDPSession, Dialog, Error, Page

from turnwise.tools.core import ToolError

PATIENCE = 5.0
"""Seconds that a page may go on loading or changing before it is looked at as it is."""

HANG = 10.0
"""Seconds without an answer after which a page counts as hanging."""

_DIALOGS = 20
_WORLD = "turnwise"


class Hung(Exception):
    """The page does not answer, or crashed; it must be thrown away."""


class _NotThere(Hung):
    """The document has no inside.js yet."""


@functools.cache
def _inside() -> str:
    return files("turnwise.tools.browser").joinpath("inside.js").read_text("utf-8")


class Tab:
    """A page and what is known of its loading."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.notes: list[str] = []  # what happened that an agent should be informed of
        self.trail: list[str] = []  # addresses, for `back`
        self.elements = 0
        self.windows = 0  # how many tabs the page has asked for so far
        self._cdp: CDPSession
        self._world: int | None = None
        self._frame = ""
        self._loading = False
        self._requests: dict[str, bool] = {}  # in flight → whether it is the page itself
        self._event = asyncio.Event()
        self._dialogs = 0
        self.crashed = False

    async def attach(self) -> Tab:
        """Listen to the page."""
        self.page.on("crash", lambda _: self._crash())
        self.page.on("dialog", self._answer)
        self._cdp = cdp = await self.page.context.new_cdp_session(self.page)
        cdp.on("Network.requestWillBeSent", self._on_request)
        cdp.on("Network.loadingFinished", self._on_finished)
        cdp.on("Network.loadingFailed", self._on_finished)
        cdp.on("Page.frameRequestedNavigation", self._on_requested)
        cdp.on("Page.frameNavigated", self._on_navigated)
        cdp.on("Page.navigatedWithinDocument", self._on_moved)
        cdp.on("Page.windowOpen", self._on_window)
        cdp.on("Page.domContentEventFired", lambda _: self._set_loading(False))
        tree, *_ = await asyncio.gather(
            cdp.send("Page.getFrameTree"),
            cdp.send("Page.enable"),
            cdp.send("Network.enable", {"maxTotalBufferSize": 1, "maxResourceBufferSize": 1}),
            cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": _inside(), "worldName": _WORLD}),
        )
        self._frame = tree["frameTree"]["frame"]["id"]
        return self

    @property
    def address(self) -> str:
        return self.page.url

    # --- asking ----------------------------------------------------------------------------------

    async def send(self, method: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One command of the protocol.

        Raises:
            Hung: no answer.
        """
        if self.crashed:
            raise Hung("the page crashed")
        try:
            async with asyncio.timeout(HANG):
                return await self._cdp.send(method, dict(arguments or {}))
        except TimeoutError:
            raise Hung(f"no answer to {method}") from None

    async def ask(self, expression: str) -> Any:
        """The value of an expression in our own world of the page, where ``turnwise`` is inside.js."""
        for attempt in range(5):
            try:
                if self._world is None:
                    where = {"frameId": self._frame, "worldName": _WORLD}
                    self._world = (await self.send("Page.createIsolatedWorld", where))["executionContextId"]
                try:
                    return await self._evaluate(expression)
                except _NotThere:  # a document from before `attach`
                    await self._evaluate(_inside())
                    return await self._evaluate(expression)
            except Error as error:  # the document was replaced meanwhile
                self._world = None
                if attempt == 4 or self.page.is_closed():
                    raise Hung(str(error).splitlines()[0]) from error
        raise AssertionError("unreachable")

    async def ask_of(self, backend: int, function: str, *arguments: Any) -> Any:
        """``turnwise.<function>(element, …)`` of the element with this number.

        Raises:
            ToolError: it is gone.
        """
        await self.ask("void turnwise")
        try:
            where = {"backendNodeId": backend, "executionContextId": self._world}
            found = await self.send("DOM.resolveNode", where)
            call = {
                "objectId": found["object"]["objectId"],
                "functionDeclaration": f"function(...a) {{ return turnwise.{function}(this, ...a) }}",
                "arguments": [{"value": argument} for argument in arguments],
                "returnByValue": True,
            }
            done = await self.send("Runtime.callFunctionOn", call)
        except Error:
            raise ToolError("That is gone from the page. Look at the page again.") from None
        return done["result"].get("value")

    async def _evaluate(self, expression: str) -> Any:
        arguments = {
            "contextId": self._world,
            "expression": expression,
            "awaitPromise": True,
            "returnByValue": True,
        }
        done = await self.send("Runtime.evaluate", arguments)
        if wrong := done.get("exceptionDetails"):
            said = str(wrong.get("exception", {}).get("description") or wrong.get("text"))[:300]
            raise _NotThere(said) if "turnwise is not defined" in said else Hung(said)
        return done["result"].get("value")

    # --- resting ---------------------------------------------------------------------------------

    async def rest(self) -> None:
        """Return when nothing loads and nothing changes any more, or after :data:`PATIENCE`.

        Raises:
            Hung: the page does not answer.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while loop.time() < deadline:
            if self._loading or self._requests:
                await self._wait(deadline - loop.time())
                continue
            still, self.elements = await self.ask("turnwise.still()")
            if still and not self._loading and not self._requests:
                break
        else:
            self.notes.append("The page has not come to rest.")
            self._requests.clear()
            self._loading = False
        self._dialogs = 0

    async def _wait(self, seconds: float) -> None:
        self._event.clear()
        if self.crashed:
            raise Hung("the page crashed")
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._event.wait()
        except TimeoutError:
            return

    # --- hands -----------------------------------------------------------------------------------

    async def open(self, address: str) -> None:
        """Load an address; what cannot be loaded leaves Chromium's error page."""
        self._set_loading(True)
        done = await self.send("Page.navigate", {"url": address})
        if done.get("errorText") or "loaderId" not in done:  # nothing there, or within the page
            self._set_loading(False)
        await self.rest()

    async def click_at(self, x: float, y: float) -> None:
        at: dict[str, Any] = {"x": x, "y": y, "button": "left", "clickCount": 1}
        await asyncio.gather(
            self.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y}),
            self.send("Input.dispatchMouseEvent", {"type": "mousePressed", **at}),
            self.send("Input.dispatchMouseEvent", {"type": "mouseReleased", **at}),
        )

    async def type_text(self, text: str) -> None:
        """Replace what is selected in the focused field."""
        if text:
            await self.send("Input.insertText", {"text": text})
        else:
            await self.press("Delete")

    async def press(self, key: str) -> None:
        """A key as Playwright names it: ``Enter``, ``Shift+Tab``, ``a``."""
        try:
            async with asyncio.timeout(HANG):
                await self.page.keyboard.press(key)
        except TimeoutError:
            raise Hung("no answer to a key") from None
        except Error as error:
            if "Unknown key" not in str(error):
                raise
            raise ToolError(
                f"There is no key {key[:40]!r}. Keys: Enter, Tab, Escape, ArrowDown, a, Shift+Tab …"
            ) from None

    async def enter(self) -> None:
        """The Enter key, in one round trip."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        await asyncio.gather(
            self.send("Input.dispatchKeyEvent", {"type": "keyDown", "text": "\r", **key}),
            self.send("Input.dispatchKeyEvent", {"type": "keyUp", **key}),
        )

    # --- events ----------------------------------------------------------------------------------

    def _set_loading(self, loading: bool) -> None:
        self._loading = loading
        self._event.set()

    def _crash(self) -> None:
        self.crashed = True
        self._event.set()

    def _on_request(self, event: Mapping[str, Any]) -> None:
        if event.get("type") in ("EventSource", "Ping", "Prefetch"):
            return
        page = event.get("frameId") == self._frame and event.get("type") == "Document"
        self._requests[event["requestId"]] = page
        if page:
            self._set_loading(True)

    def _on_finished(self, event: Mapping[str, Any]) -> None:
        page = self._requests.pop(event["requestId"], False)
        if page and event.get("errorText") == "net::ERR_ABORTED":  # or a download: no document comes
            self._loading = False
        self._event.set()

    def _on_requested(self, event: Mapping[str, Any]) -> None:
        if event.get("frameId") == self._frame and event.get("disposition") == "currentTab":
            self._set_loading(True)

    def _on_navigated(self, event: Mapping[str, Any]) -> None:
        frame = event["frame"]
        if frame["id"] != self._frame:
            return
        self._world = None
        own = frame["loaderId"]  # what else was in flight belonged to the document that is gone
        self._requests = {name: page for name, page in self._requests.items() if name == own}
        if frame.get("unreachableUrl"):  # Chromium's own error page
            self._requests.clear()
            self._set_loading(False)

    def _on_moved(self, event: Mapping[str, Any]) -> None:
        if event.get("frameId") == self._frame:
            self._set_loading(False)

    def _on_window(self, _: Mapping[str, Any]) -> None:
        self.windows += 1

    async def _answer(self, dialog: Dialog) -> None:
        """Close a dialog as Escape would, and remember what it said."""
        self._dialogs += 1
        if self._dialogs <= 3:
            self.notes.append(f"The page showed a {dialog.type}: {json.dumps(dialog.message[:300])}.")
        if self._dialogs > _DIALOGS:
            self._crash()
        try:
            await (dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())
        except Error:
            return
