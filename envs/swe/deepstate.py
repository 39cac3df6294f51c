"""Bugs of state and order: what is shared, kept too long or forgotten, and what comes before what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from turnwise.envs.swe.operators import Replacement
from turnwise.envs.swe.whole import BugPlace, Spot, WholePackage

Made = Iterator[tuple[str, list[Spot]]]
_EMPTY = ("list", "dict", "set", "OrderedDict", "deque", "defaultdict", "Counter")
_STEPS = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.With)
_COPIES = ("list", "dict", "set", "copy", "deepcopy")


def shared(package: WholePackage) -> Made:
    """Objects share a container that each had for itself; or a copy is not made any more."""
    for path, source in package.sources.items():
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                yield from _class_level(package, path, node)
            elif isinstance(node, ast.Call) and (text := _copied(package, path, node)):
                yield source.name_of(node), [package.spot(BugPlace(path, node), text)]
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from _default(package, path, node)


def stale(package: WholePackage) -> Made:
    """An attribute that a method keeps up to date no longer: it has what ``__init__`` or the class gave it."""
    for path, source in package.sources.items():
        for owner in source.nodes:
            if not isinstance(owner, ast.ClassDef):
                continue
            of: dict[str, list[tuple[str, ast.stmt]]] = {}
            for method in owner.body:
                if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                    for node in ast.walk(method):
                        if name := _updated(node):
                            assert isinstance(node, ast.stmt)
                            of.setdefault(name, []).append((method.name, node))
            for name, updates in of.items():
                if not _is_begun(owner, name):
                    continue
                for chosen in sorted({method for method, _ in updates}):
                    nodes = [node for method, node in updates if method == chosen]
                    spots = [spot for node in nodes for spot in package.dropped(path, node)]
                    if len(spots) == len(nodes):
                        yield f"{owner.name}.{chosen}", spots


def cached(package: WholePackage) -> Made:
    """A property that is computed once and kept, although what it is computed of changes."""
    for path, source in package.sources.items():
        for node in source.nodes:
            if not isinstance(node, ast.FunctionDef) or len(node.decorator_list) != 1:
                continue
            mark, owner = node.decorator_list[0], source.parents.get(node)
            if getattr(mark, "id", "") != "property" or not isinstance(owner, ast.ClassDef):
                continue
            named = [item for item in owner.body if getattr(item, "name", "") == node.name]
            if len(named) == 1 and "__slots__" not in source.of(owner):
                last = BugPlace(
                    path, node.body[-1]
                )  # unchanged: its tests count, for no test runs a decorator
                spots = [package.spot(BugPlace(path, mark), "functools.cached_property")]
                spots.append(package.spot(last, package.text(last)))
                yield source.name_of(node), spots + _imported(package, path, "functools")


def other_order(package: WholePackage) -> Made:
    """Reverse an order: of a queue, a sort, a union, two choices, two branches of a chain."""
    for path, source in package.sources.items():
        for node in source.nodes:
            if spots := _turned(package, path, node):
                yield source.name_of(node), spots


def swapped_steps(package: WholePackage) -> Made:
    """Two steps of a function that follow one another and are about the same thing, the other way round."""
    for path, source in package.sources.items():
        for node in source.nodes:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            known = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
            for first, second in pairwise(node.body):
                if _is_order(first, second, known) and source.alone(first) and source.alone(second):
                    yield source.name_of(node), package.swapped(path, first, second)
                known |= _names(first, ast.Store)


def _is_order(first: ast.stmt, second: ast.stmt, known: set[str]) -> bool:
    """Say whether both can come first, and it may matter which does. ``known`` names have a value before."""
    if not isinstance(first, _STEPS) or not isinstance(second, _STEPS) or _is_text(first):
        return False
    made, wanted = _names(first, ast.Store), _names(second, ast.Load)
    changed = made | _changed(first)
    return made & wanted <= known and bool(
        changed & (wanted | _changed(second))
        or (_names(second, ast.Store) | _changed(second)) & _names(first, ast.Load)
    )


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {
        item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, context)
    }


def _changed(node: ast.AST) -> set[str]:
    """Names of which an attribute or an item is set, or a method is called."""
    return {
        item.value.id
        for item in ast.walk(node)
        if isinstance(item, (ast.Attribute, ast.Subscript)) and isinstance(item.value, ast.Name)
        if isinstance(item.ctx, ast.Store) or isinstance(item, ast.Attribute)
    }


def _turned(package: WholePackage, path: str, node: ast.AST) -> list[Spot]:
    at, text = BugPlace(path, node), package.sources[path].of
    match node:
        case ast.Call(func=ast.Name(id="sorted"), args=[what]):
            return [package.spot(at, f"list({text(what)})")]
        case ast.Call(func=ast.Name(id="reversed"), args=[what]):
            return [package.spot(at, f"iter({text(what)})")]
        case ast.Call(func=ast.Attribute(value=what, attr="append"), args=[item], keywords=[]):
            return [package.spot(at, f"{text(what)}.insert(0, {text(item)})")]
        case ast.Call(func=ast.Attribute(value=what, attr="insert"), args=[ast.Constant(value=0), item]):
            return [package.spot(at, f"{text(what)}.append({text(item)})")]
        case ast.Call(func=ast.Attribute(value=what, attr="pop"), args=[ast.Constant(value=0)]):
            return [package.spot(at, f"{text(what)}.pop()")]
        case ast.Call(func=ast.Attribute(value=what, attr="popleft")):
            return [package.spot(at, f"{text(what)}.pop()")]
        case ast.Dict(keys=[None, None], values=[first, second]):
            return package.swapped(path, first, second)
        case ast.BoolOp(op=ast.Or(), values=[(ast.Name() | ast.Attribute()) as first, second]):
            return package.swapped(path, first, second)
        case ast.If(test=test, orelse=[ast.If(test=other) as then]) if _is_elif(package, path, then):
            source = package.sources[path]
            if not (source.alone(node.body[0]) and source.alone(then.body[0])):
                return []
            (a, b), (c, d) = source.block(node.body), source.block(then.body)
            bodies = [
                Spot(path, Replacement(a, b, source.text[c:d])),
                Spot(path, Replacement(c, d, source.text[a:b])),
            ]
            return package.swapped(path, test, other) + bodies
        case _:
            return []


def _is_elif(package: WholePackage, path: str, node: ast.If) -> bool:
    return package.sources[path].of(node).startswith("elif")


def _class_level(package: WholePackage, path: str, node: ast.ClassDef) -> Made:
    source = package.sources[path]
    made = next((item for item in node.body if getattr(item, "name", "") == "__init__"), None)
    first = next((item for item in node.body if not _is_text(item)), None)
    if not isinstance(made, ast.FunctionDef) or first is None or "__slots__" in source.of(node):
        return
    for item in made.body:
        match item:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                if not _is_empty(value) or not (gone := package.dropped(path, item)):
                    continue
                at = source.block([first])[0]
                line = f"{' ' * first.col_offset}{name} = {source.of(value)}\n"
                yield f"{node.name}.__init__", [Spot(path, Replacement(at, at, line)), *gone]
            case _:
                pass


def _is_empty(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=function, args=[] | [ast.Name()], keywords=[]):
            name = getattr(function, "attr", getattr(function, "id", ""))
            return name in _EMPTY and all(getattr(one, "id", "") in _EMPTY for one in node.args)
        case _:
            return False


def _copied(package: WholePackage, path: str, node: ast.Call) -> str:
    """Return the copied expression if this copy is kept or changed: one that is assigned or returned."""
    if not isinstance(package.sources[path].parents.get(node), (ast.Assign, ast.Return)) or node.keywords:
        return ""
    match node:
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Name() | ast.Attribute() as what]
        ):
            return package.sources[path].of(what) if name in _COPIES else ""
        case ast.Call(func=ast.Attribute(value=what, attr="copy"), args=[]):
            return package.sources[path].of(what)
        case _:
            return ""


def _default(package: WholePackage, path: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Made:
    """A default that is made once: ``x=None`` with ``if x is None: x = []`` becomes ``x=[]``."""
    names = [one.arg for one in node.args.args[-len(node.args.defaults) :]] if node.args.defaults else []
    for name, value in zip(names, node.args.defaults, strict=True):
        for item in node.body:
            match item:
                case ast.If(
                    test=ast.Compare(
                        left=ast.Name(id=tested), ops=[ast.Is()], comparators=[ast.Constant(value=None)]
                    ),
                    body=[ast.Assign(targets=[ast.Name(id=bound)], value=made)],
                    orelse=[],
                ) if tested == bound == name and _is_empty(made) and getattr(value, "value", 0) is None:
                    source = package.sources[path]
                    spots = [
                        package.spot(BugPlace(path, value), source.of(made)),
                        *package.dropped(path, item),
                    ]
                    if len(spots) == 2:
                        yield source.name_of(node), spots
                case _:
                    pass


def _is_begun(owner: ast.ClassDef, name: str) -> bool:
    """Say whether an attribute is there from the beginning: without its updates it is old, not missing."""
    for item in owner.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return any(_updated(node) == name for node in ast.walk(item))
        if isinstance(item, ast.Assign) and any(getattr(one, "id", "") == name for one in item.targets):
            return True
    return False


def _updated(node: ast.AST) -> str:
    """The attribute that a statement gives another value, empties or removes."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
            return name
        case ast.AugAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)):
            return name
        case ast.Delete(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
            return name
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="self"), attr=name),
                    attr="clear" | "pop" | "remove" | "discard" | "popitem" | "update",
                )
            )
        ):
            return name
        case _:
            return ""


def _imported(package: WholePackage, path: str, module: str) -> list[Spot]:
    """``import module`` at a file's head, if it is not there."""
    source = package.sources[path]
    body = source.tree.body
    if any(
        isinstance(item, ast.Import) and any(one.name == module and not one.asname for one in item.names)
        for item in body
    ):
        return []
    head = [item for item in body if not _is_text(item) and getattr(item, "module", "") != "__future__"]
    at = source.block([head[0]])[0]
    return [Spot(path, Replacement(at, at, f"import {module}\n"))]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
