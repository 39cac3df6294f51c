"""Python calls: a list ``[f(x=1), g()]`` (Llama 3.2 and 4, BFCL) or a ``tool_code`` block (Gemma).

They are read as literals, never run. Names that are no Python names are written with underscores, and
arguments whose names are not as ``**{"a-b": 1}``.
"""

from __future__ import annotations

import ast
import json
import keyword
import math
import re
import warnings
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused
from turnwise.tools.reading import Json, check_sayable

_FENCE = re.compile(r"```(?:tool_code|tool_call)[ \t]*\n(.*?)(?:```|$)", re.DOTALL)
_OPENS = re.compile(r"\[\s*+[A-Za-z_][\w.]*+\(")
_STARTS, _ENDS = "<|python_start|>", "<|python_end|>"
_CONSTANTS = {"true": True, "false": False, "null": None}
_TOO_LONG = 100_000
_TOO_DEEP = 32
_MOST_BITS = 10_000  # of a whole number: JSON takes no more than 4,300 digits
_USAGE = """To call one or several, write nothing but a list of calls with arguments by name:
[name(argument="value", other=3)]"""


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> read('[search(query="red", limit=5)]').calls
    (ToolCall(name='search', arguments={'query': 'red', 'limit': 5}, id='call_0'),)
    >>> read("I look.\\n```tool_code\\nprint(search(query='red'))\\n```").calls
    (ToolCall(name='search', arguments={'query': 'red'}, id='call_0'),)
    """
    fences = list(_FENCE.finditer(text))
    sources = [fence[1] for fence in fences] or _listed(text)
    if not sources:
        return ParsedText(text, ())
    try:
        nodes = [node for source in sources for node in _nodes(source)]
        calls = tuple(_call(node, specs, place) for place, node in enumerate(nodes))
    except ToolError as error:
        return refused(text, error)
    except RecursionError:
        return refused(text, ToolError("The tool call is nested too deeply."))
    return (
        ParsedText(_FENCE.sub("", text).strip() if fences else "", calls)
        if calls
        else refused(text, ToolError("The block holds no call."))
    )


def render(calls: Sequence[ToolCall]) -> str:
    """
    >>> render([ToolCall("get-time", {"zone": "UTC", "from": None})])
    '[get_time(zone="UTC", **{"from": None})]'
    """
    return f"[{', '.join(map(_written, calls))}]"


def _listed(text: str) -> list[str]:
    """The whole message as a list of calls: closed at its end, or nowhere."""
    body = text.strip().removeprefix(_STARTS).removesuffix(_ENDS).strip()
    opening = _OPENS.match(body)
    if opening is None or not (body.endswith("]") or body.find("]", opening.end()) < 0):
        return []
    return [body]


def _nodes(source: str) -> list[ast.expr]:
    """The calls of a source: a list of them, or one per line."""
    if len(source) > _TOO_LONG or _depth(source) > _TOO_DEEP:
        raise ToolError("The tool call is too large or nested too deeply.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own about odd escapes in the model's strings
            body = ast.parse(source.strip(), "<call>", "exec").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"The tool call is not valid Python: {str(error)[:200]}.") from None
    nodes: list[ast.expr] = []
    for statement in body:
        if isinstance(statement, ast.Assign):
            nodes.append(statement.value)
        elif isinstance(statement, ast.Expr):
            value = statement.value
            nodes += value.elts if isinstance(value, ast.List) else [value]
        else:
            raise ToolError("Only calls can be written here, no other Python.")
    return nodes


def _depth(source: str) -> int:
    """The most brackets that are open at once, those in strings included."""
    depth = deepest = 0
    for character in source:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _call(node: ast.expr, specs: Sequence[ToolSpec], place: int) -> ToolCall:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and node.args
    ):
        node = node.args[0]
    if not isinstance(node, ast.Call):
        raise ToolError("A call is written name(argument=value).")
    name = ast.unparse(node.func)
    spec = next((spec for spec in specs if name in (spec.name, _python_name(spec.name))), None)
    arguments: dict[str, Json] = {}
    if node.args and (spec is None or len(node.args) > len(spec.argument_names)):
        raise ToolError(f"{name[:80]}: give arguments by name.")
    given = list(zip(spec.argument_names if spec else (), node.args, strict=False))
    for key, value in [*given, *((word.arg, word.value) for word in node.keywords)]:
        found = _value(value) if key is None else {key: _value(value)}
        if not isinstance(found, dict) or arguments.keys() & found.keys():
            raise ToolError(f"{name[:80]}: an argument is given twice, or ** is no dictionary.")
        arguments |= found
    check_sayable(arguments)
    return ToolCall(spec.name if spec else name, arguments, nth(place))


def _value(node: ast.expr) -> Json:
    """A literal as JSON."""
    match node:
        case ast.Constant(value=int(value)) if value.bit_length() > _MOST_BITS:
            raise ToolError("A number in the tool call is too large.")
        case ast.Constant(value=value) if value is None or isinstance(value, (str, bool, int)):
            return value
        case ast.Constant(value=float(value)) if math.isfinite(value):
            return value
        case ast.UnaryOp(
            op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number) as operand
        ) if not isinstance(number, bool):
            return -_value(operand) if isinstance(node.op, ast.USub) else _value(operand)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            names = [
                key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
            if len(set(names)) == len(keys):
                return dict(zip(names, map(_value, values), strict=True))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case _:
            pass
    raise ToolError(f"An argument must be a literal, not {ast.unparse(node)[:80]!r}.")


def _written(call: ToolCall) -> str:
    plain = {key: value for key, value in call.arguments.items() if _is_name(key)}
    rest = {key: value for key, value in call.arguments.items() if key not in plain}
    parts = [f"{key}={_literal(value)}" for key, value in plain.items()]
    return f"{_python_name(call.name)}({', '.join([*parts, *([f'**{_literal(rest)}'] if rest else [])])})"


def _literal(value: Json) -> str:
    """A JSON value as Python; strings as JSON writes them, because ``repr`` escapes what it cannot print."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{', '.join(map(_literal, value))}]"
        case dict():
            return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
        case _:
            return repr(value)


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def _python_name(name: str) -> str:
    return name if all(map(_is_name, name.split("."))) else re.sub(r"\W|^(?=\d)", "_", name)


PYTHONIC = component(
    "dialect",
    "python",
    about="A list of Python calls, or a tool_code block, as Llama 3.2, Llama 4 and Gemma write it.",
)(Dialect("python", read, render, _USAGE, tried=3))
