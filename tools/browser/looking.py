"""Observing a browser tab, in the four forms that an agent can be given."""

from __future__ import annotations

import asyncio
import base64
from typing import Literal, NamedTuple, TypeAlias

from turnwise.tools.browser.html import show_html
from turnwise.tools.browser.tab import Tab
from turnwise.tools.browser.tree import AxNodes, Ids, Node, read_tree, show_tree

Look: TypeAlias = Literal["tree", "html", "text", "screenshot"]

ELEMENTS = 20_000
"""A page with more elements is not read."""


class Thing(NamedTuple):
    """Something on the page that can be used."""

    id: str
    role: str
    name: str
    value: str
    states: tuple[str, ...] = ()  # such as checked


class View(NamedTuple):
    """The visible contents of a page. ``address`` is the path within the origin."""

    address: str
    title: str
    text: str
    things: tuple[Thing, ...] = ()  # not of `text`, which does not read the tree
    tabs: tuple[str, ...] = ()
    tab: int = 1  # the open one, from 1
    notes: tuple[str, ...] = ()  # what happened: dialogs, blocked addresses, new tabs
    image: bytes = b""  # PNG, of `screenshot`


class Seen(NamedTuple):
    """A tab's part of a :class:`View`. ``nodes`` is None where the tree was not read."""

    title: str
    text: str
    image: bytes = b""
    nodes: tuple[Node, ...] | None = None


async def look_at(tab: Tab, kind: Look, ids: Ids) -> Seen:
    """Look at a tab; new things are entered in ``ids``. A screenshot comes with a list of what can be used."""
    if kind == "text":
        title, text = await tab.ask("[document.title, turnwise.text()]")
        return Seen(title, text.strip())
    if tab.elements > ELEMENTS:
        title = await tab.ask("document.title")
        return Seen(title, f"[The page has {tab.elements} elements, too many to show.]")
    title, (ax, nodes) = await asyncio.gather(tab.ask("document.title"), read_nodes(tab, ids))
    if kind == "html":
        document = await tab.send("DOM.getDocument", {"depth": -1})
        return Seen(title, show_html(document["root"], ax, nodes), nodes=nodes)
    if kind == "screenshot":
        usable = show_tree([node._replace(depth=0) for node in nodes if node.id])
        shot = await tab.send("Page.captureScreenshot", {"format": "png"})
        return Seen(title, usable, base64.b64decode(shot["data"]), nodes)
    return Seen(title, show_tree(nodes), nodes=nodes)


async def read_nodes(tab: Tab, ids: Ids) -> tuple[AxNodes, tuple[Node, ...]]:
    """Chromium's accessibility tree, and what of it is shown."""
    found = await tab.send("Accessibility.getFullAXTree")
    return found["nodes"], read_tree(found["nodes"], ids)
