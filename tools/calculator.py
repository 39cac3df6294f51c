"""Exact arithmetic for models: whole numbers and fractions, nothing rounded, nothing run."""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from turnwise.tools.core import ToolError

_LONGEST = 2000  # characters
_MOST_BITS = 20_000  # of a numerator or a denominator
_TOO_DEEP = 64
_AS_PYTHON = {"^": "**", "×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"}
_ALLOWED = re.compile(r"(?:\d++(?:\.\d*+)?|\.\d++|\*\*|//|[-+*/%(),]|\s|abs|min|max|sqrt|gcd)*+")
_OPERATIONS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}


class Worked(NamedTuple):
    """An expression's value, and how many operations it took (a fraction of two whole numbers is a number)."""

    value: Fraction
    operations: int
    last: tuple[str, Fraction, Fraction] | None = None  # the outermost operation and its operands


def calculate(expression: str) -> str:
    """Compute an arithmetic expression exactly: + - * / // % ^ ( ), abs, min, max, sqrt, gcd.

    >>> calculate("(3/4 - 1/2)^2 * 8"), calculate("sqrt(49) + 0.5")
    ('1/2', '15/2')

    Raises:
        ToolError: the text is no expression, divides by zero, or has no exact value of bearable size.
    """
    return shown(work_out(expression).value)


def shown(value: Fraction) -> str:
    """A number as ``calculate`` writes it.

    >>> shown(Fraction(6, 3)), shown(Fraction(-1, 3))
    ('2', '-1/3')
    """
    return str(value)


def work_out(expression: str) -> Worked:
    """The value of an expression.

    Raises:
        ToolError: see :func:`calculate`.
    """
    text = expression.strip()
    for sign, python in _AS_PYTHON.items():
        text = text.replace(sign, python)
    if not text or len(text) > _LONGEST:
        raise ToolError(f"An expression has 1 to {_LONGEST} characters.")
    if not _ALLOWED.fullmatch(text) or _depth(text) > _TOO_DEEP:
        raise ToolError(
            f"This is no arithmetic expression: {expression[:80]!r}. Use numbers and + - * / ^ ( )."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own about odd source
            tree = ast.parse(text, mode="eval").body
        return _work(tree, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(f"This is no arithmetic expression: {expression[:80]!r}.") from None
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None


def read_number(text: str) -> Fraction:
    """A single number: whole, decimal, or a fraction.

    >>> read_number(" 6/4 "), read_number("-0.25")
    (Fraction(3, 2), Fraction(-1, 4))

    Raises:
        ToolError: the text is something else.
    """
    plain = text.strip().strip("()").replace("−", "-").replace(" ", "")
    if len(plain) > _LONGEST or not re.fullmatch(r"[+-]?(\d+(/\d+)?|\d*\.\d+)", plain):
        raise ToolError(f"Give one number, such as 12, -3/4 or 0.5, not {text[:40]!r}.")
    try:
        return Fraction(plain)
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None


def _depth(text: str) -> int:
    depth = deepest = run = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        run = run + 1 if character in "+-" else 0  # unary signs nest too
        deepest = max(deepest, depth, run)
    return deepest


def _work(node: ast.expr, text: str) -> Worked:
    match node:
        case ast.Constant():
            return Worked(Fraction(text[node.col_offset : node.end_col_offset]), 0)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            done = _work(inner, text)
            return Worked(-done.value if isinstance(node.op, ast.USub) else done.value, done.operations)
        case ast.BinOp(left=left, op=op, right=right):
            first, second = _work(left, text), _work(right, text)
            value = _combine(op, first.value, second.value)
            is_number = isinstance(op, ast.Div) and all(map(_is_whole, (left, right)))
            count = first.operations + second.operations + (not is_number)
            return Worked(_small(value), count, (type(op).__name__, first.value, second.value))
        case ast.Call(func=ast.Name(id=name), args=arguments) if arguments and not node.keywords:
            given = [_work(one, text) for one in arguments]
            value = _function(name, [one.value for one in given])
            return Worked(_small(value), 1 + sum(one.operations for one in given))
        case _:
            raise ToolError("Use numbers and + - * / ^ ( ) only.")


def _is_whole(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _combine(op: ast.operator, first: Fraction, second: Fraction) -> Fraction:
    if isinstance(op, ast.Pow):
        if second.denominator != 1 or abs(second) * max(_bits(first), 1) > _MOST_BITS:
            raise ToolError("A power needs a whole exponent of bearable size.")
        return first ** int(second)
    return _OPERATIONS[type(op)](first, second)


def _function(name: str, values: list[Fraction]) -> Fraction:
    match name, values:
        case "abs", [value]:
            return abs(value)
        case "min" | "max", _:
            return min(values) if name == "min" else max(values)
        case "gcd", _ if all(value.denominator == 1 for value in values):
            return Fraction(math.gcd(*(int(value) for value in values)))
        case "sqrt", [value] if value >= 0:
            root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
            if root * root == value:
                return root
            raise ToolError(f"The square root of {shown(value)[:80]} is not exact.")
        case _:
            raise ToolError(f"{name} does not take these arguments.")


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _small(value: Fraction) -> Fraction:
    if _bits(value) > _MOST_BITS:
        raise ToolError("The value is too large.")
    return value
