"""The difference of two releases as single changes, and the fewest of them that make a test fail."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from turnwise.envs.swe.mutate import Edit


class Change(NamedTuple):
    """Lines ``first`` to ``last`` (exclusive, from 0) of a file of the newer release, and what stood there in the older."""

    path: str
    first: int
    last: int
    older: tuple[str, ...]


def changes_between(older: Mapping[str, str], newer: Mapping[str, str]) -> tuple[Change, ...]:
    """What is different in files of the newer release; those that only the older has are none."""
    found: list[Change] = []
    for path, text in sorted(newer.items()):
        before, after = older.get(path, "").splitlines(keepends=True), text.splitlines(keepends=True)
        for tag, low, high, first, last in difflib.SequenceMatcher(
            None, before, after, autojunk=False
        ).get_opcodes():
            if tag != "equal":
                found.append(Change(path, first, last, tuple(before[low:high])))
    return tuple(found)


def undone(newer: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """The changed files of the newer release without these changes."""
    texts: dict[str, str] = {}
    for path in {change.path for change in changes}:
        lines = newer[path].splitlines(keepends=True)
        for change in sorted((one for one in changes if one.path == path), reverse=True):
            lines[change.first : change.last] = change.older
        texts[path] = "".join(lines)
    return texts


def edits_of(newer: Mapping[str, str], broken: Mapping[str, str]) -> tuple[Edit, ...]:
    """From the newer texts to the broken ones, one edit for each file; the largest first."""
    found: list[Edit] = []
    for path, text in broken.items():
        before = newer[path]
        same = next((at for at, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), -1)
        first = same if same >= 0 else min(len(before), len(text))
        rest = min(len(before), len(text)) - first
        tail = next((n for n in range(rest) if before[-1 - n] != text[-1 - n]), rest)
        found.append(Edit(path, first, before[first : len(before) - tail], text[first : len(text) - tail]))
    return tuple(sorted(found, key=lambda edit: (-len(edit.old) - len(edit.new), edit.path)))


def fewest(
    changes: Sequence[Change], shows: Callable[[Sequence[Sequence[Change]]], Sequence[bool]], tries: int = 60
) -> tuple[Change, ...]:
    """Delta debugging (Zeller 2002, ddmin): few of these changes that still show what all of them show.

    ``shows`` says of several choices at once which do; at most about ``tries`` choices are tried.
    """
    kept, parts = list(changes), 2
    while len(kept) > 1 and tries > 0:
        size = -(-len(kept) // parts)
        pieces = [kept[at : at + size] for at in range(0, len(kept), size)]
        rests = [[one for one in kept if one not in piece] for piece in pieces] if parts > 2 else []
        choices = [*pieces, *rests]
        tries -= len(choices)
        found = next((choice for choice, good in zip(choices, shows(choices), strict=True) if good), None)
        if found is not None:
            parts = 2 if len(found) <= size else max(parts - 1, 2)
            kept = found
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return tuple(kept)
