"""Assertions that hold whatever is done: of a tuple or a constant, or caught where they fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_CATCHES = ("AssertionError", "Exception", "BaseException")
_FAILS = ("fail", "exit", "_exit", "skip", "xfail")


def hollow_lines(file: str) -> set[int]:
    """Lines of a file's hollow assertions, and of the handlers that catch them."""
    try:
        with open(file, "rb") as source:
            return {
                line for first, last in _spans(ast.parse(source.read())) for line in range(first, last + 1)
            }
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()


def all_hollow(text: str) -> bool:
    """Say if code has assertions, and each of them is hollow."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    lines = {line for first, last in _spans(tree) for line in range(first, last + 1)}
    asserts = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return bool(asserts) and lines.issuperset(asserts)


def _spans(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and _constant(node.test):
            yield node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, ast.Try):
            caught = [one for one in node.handlers if _catches(one.type)]
            if caught and not any(_fails(one) for one in caught):
                asserts = [one for part in node.body for one in ast.walk(part) if isinstance(one, ast.Assert)]
                yield from ((one.lineno, one.end_lineno or one.lineno) for one in asserts)
                if asserts:
                    yield from ((one.lineno, one.lineno) for one in caught)


def _constant(test: ast.expr) -> bool:
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return not all(isinstance(one, ast.Starred) for one in test.elts)
    return isinstance(test, ast.Lambda) or (isinstance(test, ast.Constant) and bool(test.value))


def _catches(kind: ast.expr | None) -> bool:
    names = [node for node in ast.walk(kind) if isinstance(node, ast.Name)] if kind else []
    return kind is None or any(one.id in _CATCHES for one in names)


def _fails(handler: ast.ExceptHandler) -> bool:
    """Say if a handler lets a test fail after all, or keeps what was caught for later."""
    for node in ast.walk(handler):
        called = node.func if isinstance(node, ast.Call) else None
        name = (
            called.attr
            if isinstance(called, ast.Attribute)
            else called.id
            if isinstance(called, ast.Name)
            else ""
        )
        if name in _FAILS or isinstance(
            node, ast.Raise | ast.Assert | ast.Return | ast.Assign | ast.AugAssign | ast.Continue
        ):
            return True
    return False
