"""The difference of two releases as single changes, and the fewest of them that make a test fail."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from turnwise.envs.swe.mutate import Edit

_T = TypeVar("_T")


class Change(NamedTuple):
    """Lines ``first`` to ``last`` (exclusive, from 0) of a file of the newer release, and what stood there in the older."""

    path: str
    first: int
    last: int
    older: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of lines that went and came."""
        return self.last - self.first + len(self.older)


class ChangedPart(NamedTuple):
    """Changes of one function (or of what is outside of all): ``where`` is its dotted name, ``lines`` those it is on, from 1."""

    path: str
    where: str
    lines: range
    changes: tuple[Change, ...]


def parts_of(newer: Mapping[str, str], changes: Sequence[Change]) -> tuple[ChangedPart, ...]:
    """Changes by the function of the newer release that they are in; each one outside of functions is a part of its own.

    Those that leave the syntax tree as it is (comments, layout, descriptions) are left out.
    """
    found: dict[tuple[str, str, int], list[Change]] = {}
    spans: dict[tuple[str, str, int], range] = {}
    for change in changes:
        where, lines = _function_at(newer[change.path], change)
        key = change.path, where, lines.start if where else change.first
        found.setdefault(key, []).append(change)
        spans[key] = lines
    parts = (
        ChangedPart(path, where, spans[path, where, at], tuple(of)) for (path, where, at), of in found.items()
    )
    return tuple(part for part in parts if not _is_same(newer, undone(newer, part.changes)))


def all_parse(texts: Mapping[str, str]) -> bool:
    """Say whether all of these are Python."""
    return all(_dumped(text) is not None for text in texts.values())


def _is_same(newer: Mapping[str, str], texts: Mapping[str, str]) -> bool:
    return all(_dumped(text) == _dumped(newer[path]) for path, text in texts.items())


@lru_cache(maxsize=256)
def _dumped(text: str) -> str | None:
    """The syntax tree without descriptions; None where there is none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                value.value = ""
    return ast.dump(tree)


@lru_cache(maxsize=64)
def functions_in(text: str) -> tuple[tuple[str, int, int], ...]:
    """Functions that are in no other: dotted name, first and last line, decorators included."""
    found: list[tuple[str, int, int]] = []

    def look(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                found.append((name + child.name, first, child.end_lineno or child.lineno))
            elif isinstance(child, ast.ClassDef):
                look(child, f"{name}{child.name}.")
            elif isinstance(child, (ast.If, ast.Try)):
                look(child, name)

    try:
        look(ast.parse(text), "")
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(found)


def _function_at(text: str, change: Change) -> tuple[str, range]:
    """The function that holds a change whole: its name and lines; no name and the change's own lines where none does."""
    first, last = change.first + 1, max(change.last, change.first + 1)
    for name, begin, end in functions_in(text):
        if begin <= first and last <= end and not (begin == first and last == end and not change.older):
            return name, range(begin, end + 1)
    return "", range(first, last + 1)


def changes_between(older: Mapping[str, str], newer: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the differences in files of the newer release; those that only the older has are none."""
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
    changes: Sequence[_T], shows: Callable[[Sequence[Sequence[_T]]], Sequence[bool]], tries: int = 60
) -> tuple[_T, ...]:
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
