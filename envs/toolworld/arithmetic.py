"""A calculator for agents: sums and products of amounts, exact to the cent, of texts that nobody has to trust."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from decimal import Decimal, DecimalException, InvalidOperation

from turnwise.envs.toolworld.database import Database
from turnwise.tools.core import ToolError

_LONGEST = 200
_WRITTEN = re.compile(r"[\d.+*/() -]+")
_SIGNS = str.maketrans({"$": "", ",": "", "\u00d7": "*", "x": "*", "\u00f7": "/", "\u2212": "-"})
_OF_TWO: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


def calculate(db: Database, expression: str) -> str:
    """Work out an expression of amounts: "12.50 + 3 * (4.25 - 1)"."""
    return worked_out(expression)


def worked_out(expression: str) -> str:
    """The value of an expression, to the cent.

    >>> worked_out("$1,250.00 + 3 * 50 - (2.5 + 2.5) / 2"), worked_out("2 x $160")
    ('1397.50', '320.00')

    Raises:
        ToolError: it is none.
    """
    if len(expression) > _LONGEST:
        raise ToolError(f"An expression has at most {_LONGEST} characters.")
    text = expression.translate(_SIGNS).strip()
    try:
        if _WRITTEN.fullmatch(text) is None:
            raise InvalidOperation
        return f"{_value(ast.parse(text, mode='eval').body, text):.2f}"
    except (SyntaxError, ValueError, MemoryError, RecursionError, DecimalException):
        raise ToolError(
            f"{expression[:60]!r} is no expression of numbers, +, -, *, / and brackets."
        ) from None


def _value(node: ast.expr, text: str) -> Decimal:
    if isinstance(node, ast.BinOp) and (does := _OF_TWO.get(type(node.op))):
        return does(_value(node.left, text), _value(node.right, text))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand, text)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Decimal(text[node.col_offset : node.end_col_offset])  # as written: a float would not be exact
    raise InvalidOperation
