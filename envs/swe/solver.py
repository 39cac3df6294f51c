"""Choice of the next action: gold, and an imperfect scripted policy."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.mutate import Edit
from turnwise.envs.swe.state import SweState
from turnwise.tasks.core import Json
from turnwise.texts import kept
from turnwise.tools.sandbox.core import MIB, PathError, Sandbox


class SweCall(NamedTuple):
    """A tool's name and its arguments."""

    name: str
    arguments: Mapping[str, Json] = {}


def gold(instance: Instance, state: SweState, sandbox: Sandbox) -> SweCall:
    """Views the place of the bug, fixes it, and submits."""
    broken = instance.broken()
    for edit in instance.edits:
        path, right = edit.path, kept(instance.fixed()[edit.path])
        try:
            text = kept(sandbox.read(path, limit=2 * MIB))
        except PathError:
            text = ""
        if text == right:
            continue
        line = right[: edit.start].count("\n") + 1
        if not state.looked and text:
            return SweCall("view", {"path": path, "first": max(line - 10, 1), "last": line + 30})
        if text and text == kept(broken.get(path, b"")):
            old, new = narrowed(edit, text)
            return SweCall("edit", {"path": path, "old": old, "new": new})
        return SweCall("create", {"path": path, "text": right})
    return SweCall("submit")


def demonstrate(instance: Instance, state: SweState, sandbox: Sandbox, rng: Random) -> SweCall:
    """An imperfect scripted policy: it explores too much, and sometimes submits without a fix."""
    draw = rng.random()
    if draw < 0.25:
        return SweCall("search", {"pattern": f"def {instance.where.rpartition('.')[2]}", "path": "."})
    if draw < 0.4:
        return SweCall("shell", {"command": f"ls {instance.source.source}"})
    return SweCall("submit") if draw < 0.5 else gold(instance, state, sandbox)


def narrowed(edit: Edit, text: str) -> tuple[str, str]:
    """The repair as text that occurs once in the broken file: whole lines, as many around it as that takes."""
    start, end = edit.start, edit.start + len(edit.new)
    while True:
        start = text.rfind("\n", 0, max(start - 1, 0)) + 1
        after = text.find("\n", end)
        end = len(text) if after < 0 else after + 1
        old = text[start:end]
        if text.count(old) == 1 or len(old) == len(text):
            at = edit.start - start
            return old, old[:at] + edit.old + old[at + len(edit.new) :]
