"""Foreign regular expressions, on an engine whose time is linear in the text (RE2).

Python's own engine tries every way of dividing a text, so that a pattern such as ``^(a+)+$`` can hold a process, and
whatever else it does, for ever. A pattern of a server, a model or a data file never reaches it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TypeAlias

import re2

from turnwise.tools.core import ToolError

Search: TypeAlias = Callable[[str], bool]
_LONGEST = 2000  # characters of a pattern
_MOST_BYTES = 4 * 2**20  # of the engine's memory for one pattern
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


@functools.lru_cache(1024)
def linear_search(pattern: str) -> Search:
    """Return a function that tells whether a pattern occurs in a text, in time linear in both.

    >>> linear_search("^(a+)+$")("a" * 100_000 + "b")
    False

    Raises:
        ToolError: the engine cannot express the pattern (it has no lookaround, no references back and no repetition
            above a thousand), or it is no pattern.
    """
    if len(pattern) > _LONGEST:
        raise ToolError(f"The pattern is too long ({len(pattern)} characters; at most {_LONGEST}).")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        compiled = re2.compile(_ESCAPED.sub(_written, pattern), options)
    except (re2.error, UnicodeEncodeError) as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error, re2.error) else str(error)
        raise ToolError(f"The pattern {pattern[:80]!r} cannot be searched for: {said[:120]}.") from None

    def search(text: str) -> bool:
        return compiled.search(text.encode("utf-8", "replace").decode()) is not None

    return search


def _written(escape: re.Match[str]) -> str:
    """JSON schemas write ``\\u0041``, RE2 ``\\x{0041}``."""
    return f"\\x{{{escape[1]}}}" if escape[1] else escape[0]
