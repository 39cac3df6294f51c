"""Mutants: wrong programs made from correct ones by one small change of the syntax tree each."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import TypeAlias

Change: TypeAlias = Callable[[ast.AST], "Iterator[ast.AST]"]
_SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.FloorDiv: (ast.Mod,),
    ast.Mod: (ast.FloorDiv,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_NAMES = {"min": "max", "max": "min", "sum": "len", "all": "any", "any": "all"}
BUDGET = 200_000
"""Loop rounds and calls after which a mutant counts as one that never ends."""


class Endless(Exception):
    """A mutant did not end within its budget."""


def mutants(source: str, most: int = 400) -> Iterator[str]:
    """Programs that differ from ``source`` by one change: an operator, a constant, a slice, a statement left out.

    No two are equal, and none equals the source; some may mean the same all the same.
    """
    tree = ast.parse(source)
    seen, made = {ast.unparse(tree)}, 0
    for index, node in enumerate(ast.walk(tree)):
        for number in range(_choices(node)):
            other = copy.deepcopy(tree)
            target = next(n for i, n in enumerate(ast.walk(other)) if i == index)
            _change(target, number)
            text = ast.unparse(ast.fix_missing_locations(other))
            if text not in seen and made < most:
                seen.add(text)
                made += 1
                yield text


def bounded(source: str) -> str:
    """The same program, which raises :class:`Endless` after too many rounds (``tick`` is for the caller to supply)."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.While | ast.For | ast.FunctionDef):
            node.body.insert(0, ast.Expr(ast.Call(ast.Name("tick", ast.Load()), [], [])))
    return ast.unparse(ast.fix_missing_locations(tree))


def ticker(budget: int = BUDGET) -> Callable[[], None]:
    """A ``tick`` for :func:`bounded`."""
    left = budget

    def tick() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Endless

    return tick


def _choices(node: ast.AST) -> int:
    """In how many ways a node is changed."""
    match node:
        case ast.Compare(ops=[op]):
            return len(_SWAPS.get(type(op), ()))
        case ast.BinOp() | ast.AugAssign():
            return len(_SWAPS.get(type(node.op), ()))
        case ast.BoolOp():
            return 1 + len(node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return 1
        case ast.Constant(value=bool()):
            return 1
        case ast.Constant(value=int()):
            return 2
        case ast.Constant(value=str()):
            return 1
        case ast.IfExp():
            return 2
        case ast.If() | ast.While():
            return 1
        case ast.Name(id=name, ctx=ast.Load()) if name in _NAMES:
            return 1
        case ast.Slice(lower=lower, upper=upper, step=step):
            return sum(end is not None for end in (lower, upper, step))
        case ast.Break() | ast.Continue():
            return 1
        case ast.FunctionDef() | ast.For():
            return len(node.body)
        case ast.Return(value=value) if value is not None:
            return 1
        case _:
            return 0


def _change(node: ast.AST, number: int) -> None:
    """Make change ``number`` of a node, in place."""
    match node:
        case ast.Compare(ops=[op]):
            node.ops = [_SWAPS[type(op)][number]()]  # type: ignore[list-item]
        case ast.BinOp() | ast.AugAssign():
            node.op = _SWAPS[type(node.op)][number]()  # type: ignore[assignment]
        case ast.BoolOp():
            if number == 0:
                node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            else:
                node.values = [v for i, v in enumerate(node.values) if i != number - 1]
        case ast.UnaryOp():
            node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
            if isinstance(node.op, ast.Not):
                node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant():
            _change_constant(node, number)
        case ast.IfExp():
            node.test = ast.Constant(number == 0)
        case ast.If() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Name():
            node.id = _NAMES[node.id]
        case ast.Slice():
            name = [n for n in ("lower", "upper", "step") if getattr(node, n) is not None][number]
            setattr(node, name, None)
        case ast.FunctionDef() | ast.For():
            node.body[number] = ast.Pass()
        case ast.Return():
            node.value = ast.Constant(None)
        case _:
            other = ast.Continue if isinstance(node, ast.Break) else ast.Break
            node.__class__ = other  # type: ignore[assignment]


def _change_constant(node: ast.Constant, number: int) -> None:
    value = node.value
    if isinstance(value, bool):
        node.value = not value
    elif isinstance(value, int):
        node.value = value + (1 if number == 0 else -1)
    elif isinstance(value, str):
        node.value = value + "?"
