"""A page's HTML without what cannot be seen: no scripts, styles, comments, hidden parts or empty wrappers."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from turnwise.tools.browser.tree import AxNodes, Node


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEPT = _words("href type placeholder alt title role for colspan rowspan target method action")
_PLAIN = _words("div span font center b i em strong small u body html")  # shown only with an id
_NEVER = _words("script style noscript template head svg iframe object embed")
_BLOCK = _words(
    "main header footer nav section article form ul ol li table thead tbody tr p h1 h2 h3 h4 h5 h6 fieldset "
    "select textarea dl dt dd details summary aside figure blockquote pre"
)


def show_html(document: Mapping[str, Any], ax: AxNodes, nodes: Sequence[Node]) -> str:
    """``DOM.getDocument``'s tree as text. What can be acted on carries the id that actions use."""
    seen = {node.get("backendDOMNodeId", 0) for node in ax if not node.get("ignored")}
    named = {node.backend: node for node in nodes if node.id}
    return "".join(_children(document, seen, named)).strip()


def _show(node: Mapping[str, Any], seen: Collection[int], named: Mapping[int, Node]) -> Iterator[str]:
    if node["nodeType"] == 3:
        text = " ".join(node["nodeValue"].split())
        if text and node["backendNodeId"] in seen:
            yield html.escape(text, quote=False)
        return
    tag = node["nodeName"].lower()
    if node["nodeType"] != 1 or tag in _NEVER:
        return
    target = named.get(node["backendNodeId"])
    inside = _joined(list(_children(node, seen, named)))
    if target is None and (not inside and not (tag == "img" and node["backendNodeId"] in seen)):
        return
    if target is None and tag in _PLAIN:
        yield inside
        return
    start = f"<{tag}{_attributes(node, target)}>"
    line = "\n" if tag in _BLOCK else ""
    yield f"{line}{start}{inside}" + (f"</{tag}>" if inside or tag not in ("input", "img", "br") else "")


def _children(node: Mapping[str, Any], seen: Collection[int], named: Mapping[int, Node]) -> Iterator[str]:
    for child in (*node.get("shadowRoots", ()), *node.get("children", ())):
        yield from _show(child, seen, named)


def _joined(parts: Sequence[str]) -> str:
    text = ""
    for part in parts:
        gap = " " if text and part and not text.endswith((" ", "\n")) and not part.startswith("\n") else ""
        text += gap + part
    return text


def _attributes(node: Mapping[str, Any], target: Node | None) -> str:
    flat = node.get("attributes", ())
    found = {name: value for name, value in zip(flat[::2], flat[1::2], strict=True) if _kept(name)}
    if target is not None:
        found = {"id": target.id, **found}
        if target.value:
            found["value"] = target.value
        found |= {state.partition("=")[0]: state.partition("=")[2] for state in target.states}
    return "".join(
        f' {name}="{html.escape(value)}"' if value else f" {name}" for name, value in found.items()
    )


def _kept(name: str) -> bool:
    return name in _KEPT or name.startswith("aria-label")
