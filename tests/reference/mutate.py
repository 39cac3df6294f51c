"""What can be changed a little in a module: a sign, a term left out, a comparison, a constant, an option for another."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OPERATORS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult], ast.Pow: [ast.Mult],
    ast.FloorDiv: [ast.Mult], ast.Mod: [ast.Mult], ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.And: [ast.Or], ast.Or: [ast.And],
}  # fmt: skip
NAMES = {
    "min": "max", "minimum": "maximum", "amin": "amax", "any": "all", "ceil": "floor", "group_mean": "group_sum",
    "cummax": "cummin", "ones_like": "zeros_like",
}  # fmt: skip
NAMES |= {new: old for old, new in NAMES.items()}
LEFT_OUT = frozenset(
    (
        "clamp",
        "abs",
        "masked_fill",
        "where",
        "exp",
        "log",
        "sqrt",
        "ceil",
        "floor",
        "round",
        "detach",
        "cumsum",
        "flip",
    )
)  # methods without which the receiver is still a tensor of that shape


class Mutant(NamedTuple):
    """A changed module: what was changed in words, which do not name lines, and its code."""

    said: str
    tree: ast.Module


def mutants_of(source: str, function: str) -> Iterator[Mutant]:
    """All mutants of the functions, classes and constants of a module; ``function`` is the part (a function or a class),
    whose options may stand for each other.
    """
    tree, seen = ast.parse(source), Counter[str]()
    theirs = {id(node) for other in _other_parts(tree, function) for node in ast.walk(other)}
    for number, node in enumerate(_bodies(tree)):
        if id(node) in theirs:
            continue
        for said, change in _changes(node, _options(tree, function)):
            mutated = copy.deepcopy(tree)
            change([*_bodies(mutated)][number])
            ast.fix_missing_locations(mutated)
            seen[said] += 1
            yield Mutant(said if seen[said] == 1 else f"{said} ({seen[said]})", mutated)


def _other_parts(tree: ast.Module, function: str) -> Iterator[ast.stmt]:
    """The parts of a module that are registered beside this one, and have mutants of their own; and what a part is on the
    laboratory's processes, which tests/contract/test_exact_signals.py compares with formulas of its own."""
    hooks = {
        keyword.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "component"
        for keyword in node.keywords
        if keyword.arg in ("exact", "stand_in") and isinstance(keyword.value, ast.Name)
    }
    for node in tree.body:
        if isinstance(node, FUNCTIONS) and node.name in hooks:
            yield node
        if (
            isinstance(node, (*FUNCTIONS, ast.ClassDef))
            and node.name != function
            and any("component(" in ast.unparse(one) for one in node.decorator_list)
        ):
            yield node


def _bodies(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of what functions do, of their defaults and of constants, without docstrings and annotations."""
    for statement in ast.walk(tree):
        if isinstance(statement, (ast.Module, ast.ClassDef)):
            for one in statement.body:
                if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant):
                    yield one.value
        if isinstance(statement, FUNCTIONS):
            roots = [d for d in statement.args.kw_defaults if d is not None]
            body = statement.body
            documented = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            for root in [*roots, *body[bool(documented) :]]:
                if not isinstance(root, (*FUNCTIONS, ast.Raise)):
                    yield from _inside(root)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.AnnAssign) and child is node.annotation:
            continue
        strict = isinstance(child, ast.keyword) and child.arg == "strict"  # of zip: lengths agree
        if not strict and not isinstance(child, (*FUNCTIONS, ast.Raise, ast.Assert, ast.expr_context)):
            yield from _inside(child)


def _options(tree: ast.Module, function: str) -> dict[str, str]:
    """The part's keyword-only parameters with their annotations."""
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == function:
            made = next((one for one in node.body if getattr(one, "name", "") == "__init__"), None)
            build = made if isinstance(node, ast.ClassDef) else node
            if isinstance(build, FUNCTIONS):
                return {a.arg: ast.unparse(a.annotation) for a in build.args.kwonlyargs if a.annotation}
    return {}


Change = tuple[str, Callable[[Any], None]]


def _changes(node: ast.AST, options: dict[str, str]) -> Iterator[Change]:
    """What can be changed at this very node; each change is made in place."""
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        yield from _operators(node, type(node.op), lambda n, new: setattr(n, "op", new()))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _operators(node, type(node.ops[0]), lambda n, new: n.ops.__setitem__(0, new()))
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.BitAnd, ast.BitOr)
    ):
        for kept in ("left", "right"):
            yield _replaced(node, ast.unparse(getattr(node, kept)), lambda n, k=kept: getattr(n, k))
    if isinstance(node, ast.UnaryOp) and ast.unparse(node) != "-1":  # the last axis, mostly
        yield _replaced(node, ast.unparse(node.operand), lambda n: n.operand)
    if isinstance(node, ast.IfExp):
        yield _replaced(node, ast.unparse(node.body), lambda n: n.body)
        yield _replaced(node, ast.unparse(node.orelse), lambda n: n.orelse)
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        yield f"`if {test}` → `if not {test}`", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    if isinstance(node, ast.Constant):
        for value in _neighbours(node.value):
            yield _set(node, repr(value), "value", value)
    if isinstance(node, ast.Name) and node.id in options:
        for other, kind in options.items():
            if other != node.id and kind == options[node.id]:
                yield _set(node, other, "id", other)
    if isinstance(node, ast.Call):
        yield from _calls(node)


def _operators(node: ast.AST, old: type[ast.AST], put: Callable[[Any, Any], None]) -> Iterator[Change]:
    for new in OPERATORS.get(old, []):
        trial = copy.deepcopy(node)
        put(trial, new)
        yield f"`{ast.unparse(node)}` → `{ast.unparse(trial)}`", lambda n, new=new: put(n, new)


def _calls(node: ast.Call) -> Iterator[Change]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in NAMES:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        said = f"`{ast.unparse(node)}` with {NAMES[name]}"
        yield said, lambda n: setattr(n.func, field, NAMES[name])
    if (
        isinstance(node.func, ast.Attribute)
        and name in LEFT_OUT
        and not isinstance(node.func.value, ast.Name)
    ) or (
        isinstance(node.func, ast.Attribute)
        and name in LEFT_OUT
        and getattr(node.func.value, "id", "") != "torch"
    ):
        yield _replaced(node, ast.unparse(node.func.value), lambda n: n.func.value)
    if [keyword.arg for keyword in node.keywords] in (["min"], ["max"]):
        new = {"min": "max", "max": "min"}[node.keywords[0].arg or ""]
        said = f"`{ast.unparse(node)}` with {new}="
        yield said, lambda n: setattr(n.keywords[0], "arg", new)


def _set(node: ast.AST, shown: str, field: str, value: Any) -> Change:
    return f"`{ast.unparse(node)}` → `{shown}`", lambda n: setattr(n, field, value)


def _replaced(node: ast.AST, shown: str, by: Callable[[Any], ast.AST]) -> Change:
    """The node becomes another of its own parts."""

    def change(n: Any) -> None:
        new = by(n)
        n.__class__, n.__dict__ = new.__class__, new.__dict__

    return f"`{ast.unparse(node)}` → `{shown}`", change


def _neighbours(value: object) -> list[Any]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return [not value] if isinstance(value, bool) else []
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value + 0.25 if value == 0 else value * 10 if abs(value) < 1e-3 else value * 1.25]
    return []
