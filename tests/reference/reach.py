"""Which definitions of the references a formula rests on, so that a change of others is known to change nothing of it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

Read = Callable[[str], str | None]
"""The text of a module by its name; None where it is not one of the references'."""


class Defined(NamedTuple):
    """A definition at the top of a module, and the module."""

    module: str
    name: str


class Statement(NamedTuple):
    """A statement without its comments and blanks, and the names in it."""

    text: str
    names: frozenset[str]


class ParsedModule(NamedTuple):
    """A module's definitions by name, and what each imported name is elsewhere (an empty one: the whole module)."""

    definitions: dict[str, list[Statement]]
    imported: dict[str, Defined]


@functools.cache
def parsed(text: str) -> ParsedModule:
    definitions: dict[str, list[Statement]] = {}
    imported: dict[str, Defined] = {}
    tree = ast.parse(text)
    for statement in tree.body:
        found = Statement(ast.dump(statement), frozenset(_names(statement)))
        for name in {*_defined(statement)}:
            definitions.setdefault(name, []).append(found)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported |= {one.asname or one.name: Defined(node.module or "", one.name) for one in node.names}
        elif isinstance(node, ast.Import):
            imported |= {one.asname or one.name: Defined(one.name, "") for one in node.names}
    return ParsedModule(definitions, imported)


def _defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top of a module gives a meaning, or may change."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        yield from _names(statement.target)
    elif isinstance(statement, ast.Assign):
        yield from (name for target in statement.targets for name in _names(target))
    elif not isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from _names(statement)


def _names(node: ast.AST) -> Iterator[str]:
    return (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def reached(roots: Iterable[Defined], read: Read, without: Collection[Defined] = ()) -> list[str]:
    """All definitions that those of ``roots`` rest on, themselves among them, as texts; those of ``without``, and what they alone rest on, left out.

    Modules that are not read do not count.
    """
    known: dict[Defined, list[str]] = {}
    left = [*roots]
    while left:
        one = left.pop()
        text = read(one.module)
        if one in known or one in without or text is None:
            continue
        module = parsed(text)
        if not one.name:
            left += [Defined(one.module, name) for name in module.definitions]
            known[one] = []
            continue
        statements = module.definitions.get(one.name, [])
        known[one] = [statement.text for statement in statements]
        for name in {name for statement in statements for name in statement.names}:
            left += [Defined(one.module, name)] if name in module.definitions else []
            left += [module.imported[name]] if name in module.imported else []
    return [f"{one.module}.{one.name} {text}" for one in sorted(known) for text in known[one]]
