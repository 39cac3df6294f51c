"""A Python file as text and syntax tree together: where nodes lie in the text, and in which function."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Sequence

from turnwise.texts import shown

_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")  # form feeds end no line for Python


class SourceText:
    """A file. Offsets count characters, lines count from 1.

    Raises:
        SyntaxError: the text does not parse.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        seen = shown(text)  # as long as the text, character for character
        self.tree = ast.parse(seen)
        self._raw = _LINE.findall(seen)
        self._starts = [0]
        for line in self._raw:
            self._starts.append(self._starts[-1] + len(line))
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        self._walk(self.tree, in_string=False)

    def _walk(self, node: ast.AST, *, in_string: bool) -> None:
        for child in ast.iter_child_nodes(node):
            self.parents[child] = node
            inside = in_string or isinstance(child, ast.JoinedStr)
            if not inside:  # Python 3.11 has no positions inside of f-strings
                self.nodes.append(child)
            self._walk(child, in_string=inside)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First and last offset (exclusive) of a node."""
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)  # pyright: ignore[reportAttributeAccessIssue]

    def of(self, node: ast.AST) -> str:
        """A node's text."""
        start, end = self.span(node)
        return self.text[start:end]

    def head_of(self, node: ast.AST) -> int:
        """The line on which running it shows: of a function its first statement's, else a node's first; 0: none."""
        if isinstance(node, ast.arguments):
            node = self.parents[node]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node.body[-1].lineno
        return getattr(node, "lineno", 0)

    def line_at(self, offset: int) -> int:
        return bisect.bisect_right(self._starts, offset)

    def block(self, statements: Sequence[ast.stmt]) -> tuple[int, int]:
        """Whole lines from the first statement's to the last one's, decorators included."""
        first = min([statements[0].lineno, *(d.lineno for d in getattr(statements[0], "decorator_list", []))])
        last = statements[-1].end_lineno or first
        return self._starts[first - 1], self._starts[min(last, len(self._raw))]

    def alone(self, statement: ast.stmt) -> bool:
        """Say whether a statement has its lines for itself (no ``;``, not behind a colon)."""
        start, end = self.span(statement)
        first, last = self.block([statement])
        after = self.text[end:last].strip()
        return not self.text[first:start].strip() and (not after or after.startswith("#"))

    def siblings(self, statement: ast.AST) -> list[ast.stmt]:
        """The block that a statement is in."""
        parent = self.parents.get(statement)
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return []

    def name_of(self, node: ast.AST) -> str:
        """The dotted name of the function or class that a node is or is in."""
        names: list[str] = []
        at: ast.AST | None = node
        while at is not None:
            if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.append(at.name)
            at = self.parents.get(at)
        return ".".join(reversed(names))

    def _offset(self, line: int, column: int) -> int:
        # Columns count bytes of UTF-8.
        raw = self._raw[line - 1] if line <= len(self._raw) else ""
        return self._starts[line - 1] + (
            column if raw.isascii() else len(raw.encode()[:column].decode("utf-8", "ignore"))
        )
