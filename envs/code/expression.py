"""A small language of expressions: a part of Python that is interpreted here, never executed.

It has whole numbers, lists of them and one argument, ``xs``. There are no attributes, imports, strings or
definitions, and every value is bounded; so a program can neither reach nor exhaust anything, and thousands of
them are judged per second without a sandbox. ``tests/code`` holds it against Python itself.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, cast

Value: TypeAlias = "int | bool | list[Value]"
_LONGEST = 300  # characters
_LARGEST = 10**15
_MOST = 1000  # items of a list
_STEPS = 20_000


class ExpressionError(Exception):
    """An expression that means nothing (``compile``), or that fails on an input."""

    def __init__(self, text: str, *, compile: bool = False) -> None:
        super().__init__(text)
        self.compile = compile


def evaluate(source: str, xs: object) -> object:
    """The value of an expression for an argument.

    >>> evaluate("sum ( [ x * 2 for x in xs if x > 3 ] )", [1, 4, 5])
    18

    Raises:
        ExpressionError: it is not of the language, or fails.
    """
    body = parse(source)
    try:
        return _Evaluation({"xs": cast(Value, xs)}).value(body)
    except (TypeError, ValueError, ZeroDivisionError, IndexError, RecursionError) as error:
        raise ExpressionError(f"{type(error).__name__}: {error}"[:120]) from None


@functools.lru_cache(4096)
def parse(source: str) -> ast.expr:
    """The tree of an expression, all of whose nodes are of the language.

    Raises:
        ExpressionError: one is not.
    """
    if len(source) > _LONGEST:
        raise ExpressionError(f"an expression has at most {_LONGEST} characters", compile=True)
    try:
        body = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError("this is not an expression", compile=True) from None
    for node in ast.walk(body):
        if type(node) not in _NODES:
            raise ExpressionError(f"{type(node).__name__} is not allowed here", compile=True)
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            raise ExpressionError(f"only these are called: {', '.join(FUNCTIONS)}", compile=True)
        if isinstance(node, ast.Constant) and type(node.value) not in (int, bool):
            raise ExpressionError("only whole numbers are written", compile=True)
        if isinstance(node, ast.ListComp) and len(node.generators) != 1:
            raise ExpressionError("one `for` in a list", compile=True)
    return body


_NODES = frozenset(
    {ast.Call, ast.Name, ast.Load, ast.Store, ast.Constant, ast.ListComp, ast.comprehension, ast.BinOp,
     ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.List,
     ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub, ast.Not, ast.And, ast.Or,
     ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn}
)  # fmt: skip
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
)
_COMPARE: Mapping[type[ast.cmpop], Callable[[Value, Value], bool]] = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.In: lambda a, b: operator.contains(cast("list[Value]", b), a),
        ast.NotIn: lambda a, b: not operator.contains(cast("list[Value]", b), a),
    }
)


def _reversed(value: Value) -> Value:
    return list(reversed(cast("list[Value]", value)))


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "sum": sum,
        "len": len,
        "max": max,
        "min": min,
        "sorted": sorted,
        "list": list,
        "reversed": _reversed,
        "abs": abs,
    }
)
"""Functions that may be called. ``reversed`` gives a list, since there are no iterators here."""


class _Evaluation:
    """One evaluation: names, and how many steps are left."""

    def __init__(self, names: dict[str, Value]) -> None:
        self.names, self.left = names, _STEPS

    def value(self, node: ast.expr) -> Value:
        self.left -= 1
        if self.left < 0:
            raise ExpressionError("it takes too long")
        found = self._value(node)
        if isinstance(found, list):
            self.left -= len(found)  # so that lists of lists are bounded too
            if len(found) > _MOST:
                raise ExpressionError(f"a list has at most {_MOST} items")
        elif abs(found) > _LARGEST:
            raise ExpressionError("the number is too large")
        return found

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                return cast(int, node.value)
            case ast.Name():
                if node.id not in self.names:
                    raise ExpressionError(f"there is no {node.id[:20]}")
                return self.names[node.id]
            case ast.List():
                return [self.value(item) for item in node.elts]
            case ast.BinOp():
                return self._binary(node.op, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                inner = self.value(node.operand)
                return not inner if isinstance(node.op, ast.Not) else -cast(int, inner)
            case ast.BoolOp():
                return self._either(node)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self.value(node.body if self.value(node.test) else node.orelse)
            case ast.ListComp():
                return self._list(node)
            case ast.Subscript():
                return self._part(node)
            case ast.Call():
                return self._call(node)
            case _:
                raise ExpressionError(f"{type(node).__name__} is not allowed here", compile=True)

    def _binary(self, kind: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(kind, ast.Mult):
            size = len(left) if isinstance(left, list) else len(right) if isinstance(right, list) else 0
            times = left if isinstance(right, list) else right
            if size and isinstance(times, int) and size * times > _MOST:
                raise ExpressionError(f"a list has at most {_MOST} items")
            return left * right  # type: ignore[operator]
        return _BINARY[type(kind)](left, right)

    def _either(self, node: ast.BoolOp) -> Value:
        found: Value = False
        for item in node.values:
            found = self.value(item)
            if bool(found) is isinstance(node.op, ast.Or):
                return found
        return found

    def _compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        for kind, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other)
            if not _COMPARE[type(kind)](left, right):
                return False
            left = right
        return True

    def _list(self, node: ast.ListComp) -> Value:
        (part,) = node.generators
        over = self.value(part.iter)
        if not isinstance(part.target, ast.Name) or not isinstance(over, list):
            raise ExpressionError("a list is made of the items of a list")
        kept, made = self.names, list[Value]()
        for item in over:
            self.names = {**kept, part.target.id: item}
            if all(self.value(test) for test in part.ifs):
                made.append(self.value(node.elt))
        self.names = kept
        return made

    def _part(self, node: ast.Subscript) -> Value:
        items = cast("list[Value]", self.value(node.value))
        if isinstance(node.slice, ast.Slice):
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            lower, upper, step = (None if end is None else cast(int, self.value(end)) for end in ends)
            return items[lower:upper:step]
        return items[cast(int, self.value(node.slice))]

    def _call(self, node: ast.Call) -> Value:
        if node.keywords or not isinstance(node.func, ast.Name):
            raise ExpressionError("no named arguments", compile=True)
        return FUNCTIONS[node.func.id](*(self.value(item) for item in node.args))
