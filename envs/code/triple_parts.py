"""Parts of a code triple: blocks of a message, plain arguments, and the triple itself."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.code.kernel import NotPlain, decode, encode
from turnwise.tasks.core import Json

ENV = "turnwise/Triples-v0"
LONGEST = {"python": 2000, "input": 400, "output": 2000, "message": 400}
"""Characters of a block."""


class Triple(NamedTuple):
    """A program that defines ``f``, its arguments as Python writes them, and what it returns, encoded as plain values are."""

    program: str
    given: str
    output: Json

    def shown(self, hidden: str = "") -> str:
        """Its blocks, but for the part of this name."""
        value = repr(decode(self.output))
        parts = {"python": self.program, "input": self.given, "output": value}
        return "\n".join(block(name, text) for name, text in parts.items() if name != hidden)


SEED = Triple("def f(x):\n    return x", "'Hello World'", "Hello World")
"""The trivial triple with which a pool begins."""


class TripleVerdict(NamedTuple):
    """Outcome of an answer: right or accepted, what is told, and details."""

    accepted: bool
    said: str
    details: Mapping[str, Json] = {}


MISSING = TripleVerdict(False, "a block is missing .", {"malformed": True})


def block(name: str, text: str) -> str:
    """A fenced block."""
    return f"```{name}\n{text}\n```"


def blocks(text: str) -> dict[str, str]:
    """The fenced blocks of a message by name; the last of each name, and none that is too long.

    >>> blocks("So:\\n```python\\ndef f(x):\\n    return 2 * x\\n```\\nand\\n```input\\n3\\n```\\n```output")
    {'python': 'def f(x):\\n    return 2 * x', 'input': '3'}
    """
    found: dict[str, str] = {}
    pieces = text.split("```")
    for inside in pieces[1:-1:2]:
        name, _, body = inside.partition("\n")
        name, body = name.strip().lower(), body.strip("\n")
        if name in LONGEST and len(body) <= LONGEST[name]:
            found[name] = body.rstrip() if name == "python" else body.strip()
    return found


def arguments(text: str) -> tuple[object, ...] | None:
    """The plain values that Python reads in a text, as the arguments of a call; None where it reads something else.

    >>> arguments("1, [2]"), arguments("'a'"), arguments("(1, 2)"), arguments(""), arguments("x"), arguments("1)(2")
    ((1, [2]), ('a',), ((1, 2),), (), None, None)
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a policy says, such as 1or 2
            call = ast.parse(f"f({text}\n)", mode="eval").body
        if not isinstance(call, ast.Call) or call.keywords or not isinstance(call.func, ast.Name):
            return None
        values = tuple(ast.literal_eval(one) for one in call.args)
        encode(list(values))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, NotPlain):
        return None
    return values
