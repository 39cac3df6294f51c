"""Bugs of omission: a case that code does not deal with. Nothing in what is left says that anything is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from turnwise.envs.swe.operators import Replacement
from turnwise.envs.swe.whole import Spot, WholePackage


def fewer_cases(package: WholePackage) -> Iterator[tuple[str, list[Spot]]]:
    """A branch of a chain, an early return, an entry of a table, a type or a value of a choice, that is not there."""
    for path, source in package.sources.items():
        for node in source.nodes:
            for made in _missing(package, path, node):
                yield source.name_of(node), made


def lost_overrides(package: WholePackage) -> Iterator[tuple[str, list[Spot]]]:
    """A class does without its own version of a method: it gets that of the class that it is built on."""
    methods: dict[str, set[str]] = {}
    for source in package.sources.values():
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                methods.setdefault(node.name, set()).update(getattr(item, "name", "") for item in node.body)
    for path, source in package.sources.items():
        for node in source.nodes:
            owner = source.parents.get(node)
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(
                owner, ast.ClassDef
            ):
                continue
            bases = {getattr(base, "attr", getattr(base, "id", "")) for base in owner.bases}
            if any(node.name in methods.get(base, ()) for base in bases if base != owner.name):
                yield source.name_of(node), package.dropped(path, node)


def skipped_supers(package: WholePackage) -> Iterator[tuple[str, list[Spot]]]:
    """A method no longer does what the method does that it extends."""
    for path, source in package.sources.items():
        for node in source.nodes:
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"))))):
                    yield source.name_of(node), package.dropped(path, node)
                case _:
                    pass


def _missing(package: WholePackage, path: str, node: ast.AST) -> Iterator[list[Spot]]:
    match node:
        case ast.If(orelse=[ast.If() as branch]):
            yield _without_branch(package, path, branch)
        case ast.If(orelse=[], body=[*_, ast.Return() | ast.Continue()]):
            yield package.dropped(path, node)
        case ast.Dict(keys=keys) if len(keys) >= 4:
            for at, key in enumerate(keys[:-1]):
                if isinstance(key, ast.Constant) and keys[at + 1] is not None:
                    yield _without_entry(package, path, key, keys[at + 1])
        case ast.Compare(
            ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple() | ast.Set() | ast.List() as few]
        ):
            yield from _without_items(package, path, few)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Tuple() as few]):
            yield from _without_items(package, path, few)
        case ast.ExceptHandler(type=ast.Tuple() as few):
            yield from _without_items(package, path, few)
        case _:
            return


def _without_branch(package: WholePackage, path: str, branch: ast.If) -> list[Spot]:
    """An ``elif`` that is gone; what comes after it stays."""
    source = package.sources[path]
    start, end = source.block(branch.body)
    head = source.text.rfind("\n", 0, source.span(branch.test)[0]) + 1
    if not source.text[head:].lstrip().startswith("elif") or not source.alone(branch.body[0]):
        return []
    return [Spot(path, Replacement(min(head, start), end, ""))]


def _without_entry(package: WholePackage, path: str, key: ast.expr, after: ast.expr | None) -> list[Spot]:
    source = package.sources[path]
    assert after is not None
    return [Spot(path, Replacement(source.span(key)[0], source.span(after)[0], ""))]


def _without_items(
    package: WholePackage, path: str, few: ast.Tuple | ast.Set | ast.List
) -> Iterator[list[Spot]]:
    source = package.sources[path]
    for at in range(len(few.elts) if len(few.elts) > 1 else 0):
        left = [source.of(item) for number, item in enumerate(few.elts) if number != at]
        opened, closed = {ast.Tuple: "()", ast.Set: "{}", ast.List: "[]"}[type(few)]
        comma = "," if isinstance(few, ast.Tuple) and len(left) == 1 else ""
        yield [Spot(path, Replacement(*source.span(few), f"{opened}{', '.join(left)}{comma}{closed}"))]
