"""Twins of tests: the same test, altered so that it must fail wherever it passes as it is.

``assert add(["1", "2"]) == 300`` becomes ``== 301``. A right repair passes the test and fails its twin; an object that
equals everything, code that reads what is expected, and a patched test runner pass both. Alterations are of what is
*expected*, never of what is given: two different values cannot both be right, so no honest repair is lost.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from turnwise.envs.swe.source import SourceText

_MOST_CONSTANTS = 3  # of one assertion, that are altered one after the other
_OPPOSITES = {
    "assertTrue": "assertFalse", "assertIn": "assertNotIn", "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone", "assertIsInstance": "assertNotIsInstance",
}  # fmt: skip
_OPPOSITE = {**_OPPOSITES, **{after: before for before, after in _OPPOSITES.items()}}
_EQUALS = frozenset(
    f"assert{name}"
    for name in (
        "Equal", "Equals", "ListEqual", "DictEqual", "TupleEqual", "SetEqual", "SequenceEqual", "MultiLineEqual",
        "CountEqual", "AlmostEqual",
    )
)  # fmt: skip
_RAISES = {"raises": "BufferError", "assertRaises": "BufferError", "assertRaisesRegex": "BufferError",
           "warns": "BytesWarning", "assertWarns": "BytesWarning"}  # fmt: skip
_HELPERS = ("assert_", "check", "verify", "_check", "_assert")


class TextEdit(NamedTuple):
    """Replace ``old`` at character ``start`` by ``new``."""

    start: int
    old: str
    new: str


class Twin(NamedTuple):
    """An altered test function: of file ``path``, by its id without a case.

    ``cases`` are the tests of it that are not what they were: id, id in the altered file, and whether it must fail.
    """

    path: str
    function: str
    edits: tuple[TextEdit, ...]
    cases: tuple[tuple[str, str, bool], ...]

    @staticmethod
    def from_json(row: Sequence[Any]) -> Twin:
        path, function, edits, cases = row
        return Twin(
            path, function, tuple(TextEdit(*edit) for edit in edits), tuple((*case,) for case in cases)
        )

    @property
    def is_plain(self) -> bool:
        """True if it looks like a test that somebody wrote: only a value is another."""
        return not any(edit.new == f"({edit.old}, None)" for edit in self.edits)

    @property
    def failing(self) -> frozenset[str]:
        """The tests that must not pass in the altered file, by their own ids."""
        return frozenset(test for test, _, fails in self.cases if fails)


def function_of(test: str) -> str:
    """A test's id without its case."""
    return test.partition("[")[0]


def altered(text: str, twins: Sequence[Twin]) -> str:
    """A file of tests with these alterations, which are of different functions."""
    for edit in sorted((edit for twin in twins for edit in twin.edits), reverse=True):
        assert text[edit.start : edit.start + len(edit.old)] == edit.old
        text = text[: edit.start] + edit.new + text[edit.start + len(edit.old) :]
    return text


def find_function(source: SourceText, function: str) -> ast.FunctionDef | None:
    """The function of a test id, where it stands in this file itself."""
    node: ast.AST | None = source.tree
    for name in function.split("::")[1:]:
        node = next((item for item in getattr(node, "body", []) if getattr(item, "name", "") == name), None)
    return node if isinstance(node, ast.FunctionDef) else None


def alterations(
    source: SourceText, function: ast.FunctionDef, rng: Random, line: int = 0
) -> Iterator[tuple[TextEdit, ...]]:
    """Ways to alter a test, the most telling first: those of the assertion at ``line``, or of the next after it.

    ``line`` is where the test fails with the bug; another assertion may have nothing to do with it.
    """
    assertions = [node for node in ast.walk(function) if _is_assertion(node)]
    assertions.sort(key=lambda node: (max(line - (node.end_lineno or 0), 0), node.lineno))  # pyright: ignore[reportAttributeAccessIssue]
    seen: set[tuple[TextEdit, ...]] = set()
    for node in assertions:
        for edits in _Alter(source, function, rng).of(node):
            if edits and edits not in seen:
                seen.add(edits)
                yield edits


def assertions_of(function: ast.FunctionDef) -> list[ast.Assert]:
    """The assertions ``left == right`` that a test's own body makes, one after the other."""
    return [node for node in function.body if isinstance(node, ast.Assert) and _is_equality(node.test)]


def changed_constant(value: object, rng: Random) -> object:
    """Another value of the same type, near it; the same where there is none."""
    match value:
        case bool():
            return not value
        case int():
            return value + rng.choice((1, -1, 10)) if value else rng.choice((1, 2))
        case float():
            return 2 * value + 1
        case str():
            return _changed_text(value, rng)
        case bytes() if value.isascii():
            return _changed_text(value.decode(), rng).encode()
        case None:
            return 0
        case _:
            return value


def rows_of(function: ast.FunctionDef) -> tuple[tuple[str, ...], Sequence[ast.expr]]:
    """The names and rows of the one ``parametrize`` of a test whose rows stand there; nothing where there is none."""
    found = [
        node
        for node in function.decorator_list
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "parametrize"
    ]
    if len(found) != 1 or len(found[0].args) < 2:
        return (), ()
    names, rows = found[0].args[:2]
    told = names.elts if isinstance(names, (ast.List, ast.Tuple)) else [names]
    texts = [str(part.value) for part in told if isinstance(part, ast.Constant)]
    listed = [name.strip() for name in texts[0].split(",")] if len(texts) == 1 else texts
    return tuple(listed), rows.elts if isinstance(rows, (ast.List, ast.Tuple)) else ()


def cell(row: ast.expr, names: Sequence[str], name: str) -> ast.expr | None:
    """Return a row's value for a name."""
    at = names.index(name)
    if isinstance(row, ast.Call) and getattr(row.func, "attr", "") == "param":
        return row.args[at] if at < len(row.args) else None
    if len(names) == 1:
        return row
    return row.elts[at] if isinstance(row, (ast.Tuple, ast.List)) and at < len(row.elts) else None


class _Alter:
    """The alterations of one assertion of a function."""

    def __init__(self, source: SourceText, function: ast.FunctionDef, rng: Random) -> None:
        self._source, self._function, self._rng = source, function, rng

    def of(self, node: ast.AST) -> Iterator[tuple[TextEdit, ...]]:
        match node:
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                yield from self._expected((right, left))
                yield (self._paired(right),)
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.In()], comparators=[right]) as test):
                yield from self._container(left, right)
                yield (self._replaced(test, f"not ({self._source.of(test)})"),)
            case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=operand) as test):
                yield (self._replaced(test, f"({self._source.of(operand)})"),)
            case ast.Assert(test=test):
                yield (self._replaced(test, f"not ({self._source.of(test)})"),)
            case ast.Call(func=ast.Attribute(attr=name), args=[first, second, *_]) if name in _EQUALS:
                yield from self._expected((second, first))
                if name in ("assertEqual", "assertEquals"):
                    yield (self._paired(second),)
            case ast.Call(func=ast.Attribute(attr=name) as func) if name in _OPPOSITE:
                owner = self._source.of(func.value)
                yield (self._replaced(func, f"{owner}.{_OPPOSITE[name]}"),)
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in _RAISES:
                yield (self._replaced(first, _RAISES[name]),)
            case ast.Call(args=[*_, _]):
                yield from self._constants(node.args[-1], calls=True)
                if len(node.args) > 1:  # a helper such as assert_equal(expected, result)
                    yield from self._expected(node.args[::-1])
            case _:
                pass

    def _expected(self, sides: Sequence[ast.expr]) -> Iterator[tuple[TextEdit, ...]]:
        """Another constant in the side that holds what is expected: the first of them that nothing is called in."""
        for side in sides:
            found = self._named(side.id) if isinstance(side, ast.Name) else self._constants(side)
            if made := list(found):
                yield from made
                return

    def _constants(self, side: ast.expr, *, calls: bool = False) -> Iterator[tuple[TextEdit, ...]]:
        if not calls and any(isinstance(node, ast.Call) and not _is_approx(node) for node in ast.walk(side)):
            return
        indices = {
            inner
            for node in ast.walk(side)
            if isinstance(node, ast.Subscript)
            for inner in ast.walk(node.slice)
        }
        found = [
            node
            for node in ast.walk(side)
            if isinstance(node, ast.Constant) and node in self._source.parents and node not in indices
        ]
        self._rng.shuffle(found)
        for node in found[:_MOST_CONSTANTS]:
            if edit := self._changed(node):
                yield (edit,)

    def _named(self, name: str) -> Iterator[tuple[TextEdit, ...]]:
        """Alter an expected value that has a name, where the name is bound, if that is in this test."""
        names, rows = rows_of(self._function)
        if name in names:
            for _ in range(2):
                cells = [value for row in rows if (value := cell(row, names, name)) is not None]
                yield tuple(
                    edits[0] for value in cells if (edits := next(self._constants(value), None)) is not None
                )
            return
        uses = [node for node in ast.walk(self._function) if isinstance(node, ast.Name) and node.id == name]
        bound = [node for node in self._function.body if _binds(node, name)]
        if len(uses) == 2 and len(bound) == 1:
            yield from self._constants(bound[0].value)  # pyright: ignore[reportAttributeAccessIssue]

    def _container(self, left: ast.expr, right: ast.expr) -> Iterator[tuple[TextEdit, ...]]:
        if isinstance(left, ast.Constant) and isinstance(left.value, str) and len(left.value) > 1:
            yield (self._replaced(left, repr(f"{left.value}{_changed_text(left.value, self._rng)}")),)
        items = right.elts if isinstance(right, (ast.List, ast.Tuple, ast.Set)) else []
        if items and all(isinstance(item, ast.Constant) for item in items):
            known = [item.value for item in items if isinstance(item, ast.Constant)]
            edits = [self._changed(item) for item in items if isinstance(item, ast.Constant)]
            if all(edit and ast.literal_eval(edit.new) not in known for edit in edits):
                yield tuple(edit for edit in edits if edit)

    def _changed(self, node: ast.Constant) -> TextEdit | None:
        value = changed_constant(node.value, self._rng)
        if value == node.value and type(value) is type(node.value):
            return None
        return self._replaced(node, _written(value, like=self._source.of(node)))

    def _paired(self, node: ast.AST) -> TextEdit:
        """In a pair with nothing: what equals a value does not equal that."""
        return self._replaced(node, f"({self._source.of(node)}, None)")

    def _replaced(self, node: ast.AST, text: str) -> TextEdit:
        start, end = self._source.span(node)
        return TextEdit(start, self._source.text[start:end], text)


def _written(value: object, *, like: str) -> str:
    """A constant as the one before it was written: nothing else may tell a twin from its test."""
    text = repr(value)
    return f'"{text[1:-1]}"' if like.startswith('"') and text.startswith("'") and '"' not in text else text


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in _EQUALS or name in _OPPOSITE or name in _RAISES or name.startswith(_HELPERS)


def _is_equality(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)


def _is_approx(node: ast.Call) -> bool:
    return getattr(node.func, "attr", getattr(node.func, "id", "")) in (
        "approx",
        "join",
        "dedent",
        "Decimal",
        "set",
        "dict",
    )


def _binds(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=known)]):
            return known == name
        case _:
            return False


def _changed_text(text: str, rng: Random) -> str:
    """The text with one letter or digit another, so that it looks like what it was."""
    places = [at for at, sign in enumerate(text) if sign.isalnum() and sign.isascii()]
    if not places:
        return f"{text}x"
    at = rng.choice(places)
    letters = "0123456789" if text[at].isdigit() else "abcdefghijklmnopqrstuvwxyz"
    choice = rng.choice([sign for sign in letters if sign != text[at].lower()])
    return text[:at] + (choice.upper() if text[at].isupper() else choice) + text[at + 1 :]
