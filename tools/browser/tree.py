"""The accessibility tree as an agent reads it: roles, quoted names, ids that stay."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

AxNodes: TypeAlias = Sequence[Mapping[str, Any]]
"""``Accessibility.getFullAXTree``'s nodes."""

Ids: TypeAlias = dict[tuple[str, str, int], int]
"""(role, name, which of those) → number. A thing keeps its id as long as it is called the same."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


INTERACTIVE = _words(
    "link button textbox searchbox combobox checkbox radio switch slider spinbutton tab menuitem option listbox "
    "menuitemcheckbox menuitemradio treeitem gridcell disclosuretriangle textarea popupbutton colorwell date "
    "datetime inputtime"
)
_SPELLED = {
    "DisclosureTriangle": "button",
    "ComboBoxSelect": "combobox",
    "ColorWell": "textbox",
    "Date": "textbox",
    "DateTime": "textbox",
    "InputTime": "textbox",
    "Iframe": "iframe",
    "listitem": "item",
}
_FLAT = _words(
    "generic none presentation RootWebArea LayoutTable LayoutTableRow LayoutTableCell Section "
    "ListMarker MenuListPopup LabelText paragraph strong emphasis subscript superscript mark Legend Canvas"
)
_NOT_USED = _words(
    "RootWebArea Iframe main article region document heading dialog alert status"
)  # by focus alone
_STATES = ("disabled", "checked", "pressed", "selected", "expanded", "required", "invalid", "readonly")


class Node(NamedTuple):
    """A thing on the page. ``backend`` is Chromium's number of its element, while the page lives."""

    id: str  # "e7"; "" where nothing can be done with it
    role: str
    name: str
    depth: int
    states: tuple[str, ...]
    value: str
    backend: int

    def __str__(self) -> str:
        words = [self.id] if self.id else []
        if self.role != "text":
            words.append(self.role)
        if self.name:
            words.append(json.dumps(self.name, ensure_ascii=False))
        if self.value:
            words.append(f"= {json.dumps(self.value, ensure_ascii=False)}")
        return "  " * self.depth + " ".join((*words, *self.states))


def read_tree(nodes: AxNodes, ids: Ids) -> tuple[Node, ...]:
    """The tree without what is hidden or only layout; new things are entered in ``ids``."""
    if not nodes:
        return ()
    by_id = {node["nodeId"]: node for node in nodes}
    found = _merge_texts(_walk(nodes[0], by_id, 0))
    seen: Counter[tuple[str, str]] = Counter()
    named: list[Node] = []
    for node, active in found:
        if active:
            key = (node.role, node.name, seen[node.role, node.name])
            seen[node.role, node.name] += 1
            node = node._replace(id=f"e{ids.setdefault(key, len(ids) + 1)}")
        named.append(node)
    return tuple(named)


def show_tree(nodes: Sequence[Node], limit: int = 1500) -> str:
    """One line per node. Whatever the page says is in quotes, so that it cannot pass for structure."""
    lines = [str(node) for node in nodes[:limit]]
    if len(nodes) > limit:
        lines.append(f"[… {len(nodes) - limit} more]")
    return "\n".join(lines)


def _walk(root: Mapping[str, Any], by_id: Mapping[str, Any], depth: int) -> Iterator[tuple[Node, bool]]:
    stack = [(root, depth)]
    while stack:
        ax, depth = stack.pop()
        role = ax.get("role", {}).get("value", "")
        if role == "InlineTextBox":
            continue
        node, active = _node(ax, role, depth)
        shown = (
            not ax.get("ignored") and (active or role not in _FLAT) and (node.name or role != "StaticText")
        )
        if shown:
            yield node, active
        if shown and node.role not in ("combobox", "listbox") and _tells_all(ax, node, by_id):
            continue
        deeper = depth + bool(shown)
        children = [by_id[child] for child in ax.get("childIds", ()) if child in by_id]
        stack.extend((child, deeper) for child in reversed(children))


def _node(ax: Mapping[str, Any], role: str, depth: int) -> tuple[Node, bool]:
    properties = {item["name"]: item["value"].get("value") for item in ax.get("properties", ())}
    name = " ".join(str(ax.get("name", {}).get("value", "")).split())
    shown = "text" if role == "StaticText" else _SPELLED.get(role, role)
    if role == "heading" and "level" in properties:
        shown = f"heading {properties['level']}"
    states = tuple(_said(state, properties[state]) for state in _STATES if _tells(state, properties, role))
    value = str(ax.get("value", {}).get("value", "")) if "value" in ax else ""
    focusable = properties.get("focusable") is True and role not in _NOT_USED
    active = (role.lower() in INTERACTIVE or focusable) and not ax.get("ignored")
    backend = ax.get("backendDOMNodeId", 0)
    return Node("", shown, name, depth, states, value if value != name else "", backend), active


def _tells(state: str, properties: Mapping[str, Any], role: str) -> bool:
    """Say whether a state is worth a word: what is false goes without saying, except that something is closed."""
    if state == "expanded" and state in properties:
        return not role.lower().startswith("combobox")
    return properties.get(state) not in (None, False, "false", "")


def _said(state: str, value: object) -> str:
    if state == "expanded":
        return "expanded" if value is True else "collapsed"
    return state if value in (True, "true") else f"{state}={value}"


def _tells_all(ax: Mapping[str, Any], node: Node, by_id: Mapping[str, Any]) -> bool:
    """Say whether the name tells all that is inside: then the inside need not be shown again."""
    if node.role == "text" or node.role == "textbox" or node.role == "searchbox":
        return True
    if not node.name:
        return False
    inside: list[str] = []
    stack = list(ax.get("childIds", ()))
    while stack:
        child = by_id.get(stack.pop())
        if child is None:
            continue
        role = child.get("role", {}).get("value", "")
        if role == "StaticText":
            inside.append(" ".join(str(child.get("name", {}).get("value", "")).split()))
        elif not child.get("ignored") and role not in _FLAT and role not in ("InlineTextBox", "image"):
            return False
        stack.extend(child.get("childIds", ()))
    return all(text in node.name for text in inside)


def _merge_texts(found: Iterator[tuple[Node, bool]]) -> list[tuple[Node, bool]]:
    """Texts that follow each other become one."""
    merged: list[tuple[Node, bool]] = []
    for node, active in found:
        if merged and not active and node.role == "text":
            last = merged[-1][0]
            if last.role == "text" and last.depth == node.depth:
                merged[-1] = (last._replace(name=f"{last.name} {node.name}"), False)
                continue
        merged.append((node, active))
    return merged
