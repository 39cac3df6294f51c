"""Mutation operators: the procedural ones of SWE-smith (arXiv 2504.21798), written anew, and a few more.

Each says which nodes it fits and makes a :class:`Replacement` of one, or None where nothing sensible comes out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.swe.source import SourceText


class Replacement(NamedTuple):
    """New text for the characters from ``start`` to ``end``."""

    start: int
    end: int
    text: str


Make: TypeAlias = Callable[[SourceText, Any, Random], "Replacement | None"]


class Operator(NamedTuple):
    """Kinds of node that an operator fits, and the function that makes the replacement."""

    kinds: tuple[type[ast.AST], ...]
    make: Make

    def fits(self, node: ast.AST) -> bool:
        return isinstance(node, self.kinds)


_FLIPS: Mapping[type[ast.AST], tuple[str, ...]] = MappingProxyType(
    {
        ast.Lt: ("<=", ">"), ast.LtE: ("<", ">="), ast.Gt: (">=", "<"), ast.GtE: (">", "<="),
        ast.Eq: ("!=",), ast.NotEq: ("==",), ast.In: ("not in",), ast.NotIn: ("in",),
        ast.Is: ("is not",), ast.IsNot: ("is",), ast.And: ("or",), ast.Or: ("and",),
        ast.Add: ("-",), ast.Sub: ("+",), ast.Mult: ("+", "//"), ast.Div: ("*", "//"), ast.FloorDiv: ("/", "*"),
        ast.Mod: ("//", "*"), ast.BitAnd: ("|",), ast.BitOr: ("&",), ast.LShift: (">>",), ast.RShift: ("<<",),
    }
)  # fmt: skip


def _unparsed(source: SourceText, old: ast.AST, new: ast.AST) -> Replacement:
    return Replacement(*source.span(old), ast.unparse(new))


def flip_operator(
    source: SourceText, node: ast.Compare | ast.BoolOp | ast.BinOp, rng: Random
) -> Replacement | None:
    """Another comparison, connective or arithmetic operator."""
    if isinstance(node, ast.Compare):
        operator, left, right = node.ops[0], node.left, node.comparators[0]
    elif isinstance(node, ast.BoolOp):
        operator, left, right = node.op, node.values[0], node.values[1]
    else:
        operator, left, right = node.op, node.left, node.right
    choices = _FLIPS.get(type(operator))
    if choices is None or _is_text(left) or _is_text(right):
        return None
    start, end = source.span(left)[1], source.span(right)[0]
    between = source.text[start:end]
    sign = next((sign for sign in _SIGNS if type(operator) in sign[1] and sign[0] in between), None)
    if sign is None or "#" in between:
        return None
    return Replacement(start, end, between.replace(sign[0], rng.choice(choices), 1))


_SIGNS: tuple[tuple[str, tuple[type[ast.AST], ...]], ...] = (
    ("not in", (ast.NotIn,)), ("is not", (ast.IsNot,)), ("<=", (ast.LtE,)), (">=", (ast.GtE,)), ("==", (ast.Eq,)),
    ("!=", (ast.NotEq,)), ("<<", (ast.LShift,)), (">>", (ast.RShift,)), ("//", (ast.FloorDiv,)),
    ("<", (ast.Lt,)), (">", (ast.Gt,)), ("and", (ast.And,)), ("or", (ast.Or,)), ("in", (ast.In,)),
    ("is", (ast.Is,)), ("+", (ast.Add,)), ("-", (ast.Sub,)), ("*", (ast.Mult,)), ("/", (ast.Div,)),
    ("%", (ast.Mod,)), ("&", (ast.BitAnd,)), ("|", (ast.BitOr,)),
)  # fmt: skip


def swap_operands(source: SourceText, node: ast.BinOp | ast.Compare, rng: Random) -> Replacement | None:
    """``a - b`` becomes ``b - a``, ``a < b`` becomes ``b < a``."""
    if isinstance(node, ast.Compare):
        if len(node.ops) != 1 or isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            return None
        left, right = node.left, node.comparators[0]
    else:
        left, right = node.left, node.right
    (start, middle), (after, end) = source.span(left), source.span(right)
    return Replacement(start, end, source.of(right) + source.text[middle:after] + source.of(left))


def change_constant(source: SourceText, node: ast.Constant, rng: Random) -> Replacement | None:
    """A number one off, a truth value turned round."""
    value: object = node.value
    if isinstance(value, bool):
        return _unparsed(source, node, ast.Constant(not value))
    if isinstance(value, int) and abs(value) < 10_000:
        return _unparsed(source, node, ast.Constant(max(value + rng.choice((-1, 1)), 0)))
    return None


def break_chain(source: SourceText, node: ast.BinOp | ast.BoolOp, rng: Random) -> Replacement | None:
    """``a + b + c`` becomes ``a + b``; ``p and q`` becomes ``p``."""
    if isinstance(node, ast.BoolOp):
        kept = node.values[:-1] if rng.random() < 0.5 else node.values[1:]
        return Replacement(
            *source.span(node), source.text[source.span(kept[0])[0] : source.span(kept[-1])[1]]
        )
    if not isinstance(node.left, ast.BinOp) or _is_text(node.left):
        return None
    return Replacement(*source.span(node), source.of(node.left))


def invert_condition(
    source: SourceText, node: ast.If | ast.While | ast.IfExp, rng: Random
) -> Replacement | None:
    """``if p`` becomes ``if not p``; with an else of its own, the branches are swapped."""
    test = node.test
    if isinstance(node, ast.If) and node.orelse and not isinstance(node.orelse[0], ast.If):
        (start, middle), (after, end) = source.block(node.body), source.block(node.orelse)
        if middle <= after and source.alone(node.body[0]) and source.alone(node.orelse[0]):
            return Replacement(
                start, end, source.text[after:end] + source.text[middle:after] + source.text[start:middle]
            )
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return Replacement(*source.span(test), source.of(test.operand))
    return Replacement(*source.span(test), f"not ({source.of(test)})")


def drop_condition(source: SourceText, node: ast.If, rng: Random) -> Replacement | None:
    """The body of an ``if`` without its condition, or neither."""
    if node.orelse or not source.alone(node) or not source.alone(node.body[0]):
        return None
    if rng.random() < 0.4:
        return _without(source, node)
    return _dedented(source, node, node.body)


def drop_loop(source: SourceText, node: ast.For | ast.While, rng: Random) -> Replacement | None:
    """A loop that is gone."""
    return _without(source, node)


def drop_assignment(source: SourceText, node: ast.Assign | ast.AugAssign, rng: Random) -> Replacement | None:
    """An assignment that is gone."""
    return _without(source, node)


def drop_wrapper(source: SourceText, node: ast.With | ast.Try, rng: Random) -> Replacement | None:
    """Unprotect what ``with`` or ``try`` protects."""
    if isinstance(node, ast.Try) and (node.orelse or node.finalbody):
        return None
    return _dedented(source, node, node.body) if source.alone(node.body[0]) else None


def shuffle_lines(source: SourceText, node: ast.stmt, rng: Random) -> Replacement | None:
    """Two statements that follow each other, the other way round."""
    block = source.siblings(node)
    at = block.index(node) if node in block else len(block)
    if at + 1 >= len(block) or isinstance(source.parents.get(node), ast.Module):
        return None
    after = block[at + 1]
    simple = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For)
    if (
        not isinstance(after, simple)
        or _is_docstring(node)
        or not (source.alone(node) and source.alone(after))
    ):
        return None
    (start, middle), (then, end) = source.block([node]), source.block([after])
    swapped = source.text[then:end] + source.text[middle:then] + source.text[start:middle]
    return Replacement(start, end, swapped)


def drop_return(source: SourceText, node: ast.Return, rng: Random) -> Replacement | None:
    """``return x`` computes x, and returns nothing."""
    return None if node.value is None else Replacement(*source.span(node), source.of(node.value))


def shift_slice(source: SourceText, node: ast.Slice, rng: Random) -> Replacement | None:
    """A bound of a slice one off."""
    bounds = [bound for bound in (node.lower, node.upper) if bound is not None]
    if not bounds:
        return None
    bound = rng.choice(bounds)
    return Replacement(*source.span(bound), f"{source.of(bound)} {rng.choice('+-')} 1")


def change_default(source: SourceText, node: ast.arguments, rng: Random) -> Replacement | None:
    """Another default of an argument."""
    defaults = [value for value in (*node.defaults, *node.kw_defaults) if isinstance(value, ast.Constant)]
    if not defaults:
        return None
    chosen = rng.choice(defaults)
    if chosen.value is None or isinstance(chosen.value, str):
        return Replacement(*source.span(chosen), "''" if chosen.value != "" else "' '")
    return change_constant(source, chosen, rng)


def swap_jump(source: SourceText, node: ast.Break | ast.Continue, rng: Random) -> Replacement:
    """``break`` for ``continue`` and back."""
    return Replacement(*source.span(node), "continue" if isinstance(node, ast.Break) else "break")


def swap_arguments(source: SourceText, node: ast.Call, rng: Random) -> Replacement | None:
    """The first two arguments of a call, exchanged."""
    if len(node.args) < 2 or any(isinstance(value, ast.Starred) for value in node.args[:2]):
        return None
    (start, middle), (after, end) = source.span(node.args[0]), source.span(node.args[1])
    return Replacement(
        start, end, source.of(node.args[1]) + source.text[middle:after] + source.of(node.args[0])
    )


def drop_base(source: SourceText, node: ast.ClassDef, rng: Random) -> Replacement | None:
    """A class that does not inherit any more."""
    if len(node.bases) != 1 or node.keywords:
        return None
    start, end = source.span(node.bases[0])
    opened = source.text.rfind("(", 0, start)
    closed = source.text.find(")", end)
    return Replacement(opened, closed + 1, "")


def drop_method(source: SourceText, node: ast.FunctionDef, rng: Random) -> Replacement | None:
    """A method that is gone."""
    return _without(source, node) if isinstance(source.parents.get(node), ast.ClassDef) else None


def remove_feature(source: SourceText, node: ast.FunctionDef, rng: Random) -> Replacement | None:
    """A function whose body was never written: its signature and docstring remain."""
    body = node.body[1:] if _is_docstring(node.body[0]) else node.body
    if len(body) < 2 or not source.alone(body[0]):
        return None
    start, end = source.block(body)
    return Replacement(start, end, f"{' ' * body[0].col_offset}raise NotImplementedError\n")


OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        "flip_operator": Operator((ast.Compare, ast.BoolOp, ast.BinOp), flip_operator),
        "swap_operands": Operator((ast.BinOp, ast.Compare), swap_operands),
        "change_constant": Operator((ast.Constant,), change_constant),
        "break_chain": Operator((ast.BinOp, ast.BoolOp), break_chain),
        "invert_condition": Operator((ast.If, ast.While, ast.IfExp), invert_condition),
        "drop_condition": Operator((ast.If,), drop_condition),
        "drop_loop": Operator((ast.For, ast.While), drop_loop),
        "drop_assignment": Operator((ast.Assign, ast.AugAssign), drop_assignment),
        "drop_wrapper": Operator((ast.With, ast.Try), drop_wrapper),
        "shuffle_lines": Operator((ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For), shuffle_lines),
        "drop_return": Operator((ast.Return,), drop_return),
        "shift_slice": Operator((ast.Slice,), shift_slice),
        "change_default": Operator((ast.arguments,), change_default),
        "swap_jump": Operator((ast.Break, ast.Continue), swap_jump),
        "swap_arguments": Operator((ast.Call,), swap_arguments),
        "drop_base": Operator((ast.ClassDef,), drop_base),
        "drop_method": Operator((ast.FunctionDef,), drop_method),
        "remove_feature": Operator((ast.FunctionDef,), remove_feature),
    }
)


def _is_text(node: ast.AST) -> bool:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return constant or isinstance(node, ast.JoinedStr)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _without(source: SourceText, node: ast.stmt) -> Replacement | None:
    block = source.siblings(node)
    if not block or not source.alone(node):
        return None
    start, end = source.block([node])
    return Replacement(start, end, f"{' ' * node.col_offset}pass\n" if len(block) == 1 else "")


def _dedented(source: SourceText, node: ast.stmt, body: list[ast.stmt]) -> Replacement | None:
    """A compound statement's body in its place."""
    if not source.alone(node):
        return None
    start, end = source.block([node])
    first, last = source.block(body)
    shift = body[0].col_offset - node.col_offset
    lines = source.text[first:last].splitlines(keepends=True)
    return Replacement(
        start, end, "".join(line[shift:] if not line[:shift].strip() else line for line in lines)
    )
