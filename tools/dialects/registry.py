"""The dialects by name, ours and those of plugins."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import components, get_component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolSpec
from turnwise.tools.dialects.core import Dialect


def get_dialect(name: str) -> Dialect:
    """The dialect of this name.

    Raises:
        NotFoundError: there is none; the nearest is named.
    """
    return get_component("dialect", name).target


def dialects() -> list[Dialect]:
    """All dialects, ours first."""
    return [entry.target for entry in components("dialect")]


def dialect_names() -> list[str]:
    """Their names."""
    return [entry.name for entry in components("dialect")]


def read_calls(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """Calls in whatever dialect a text is written, for policies of which nothing is known.

    The first dialect that finds calls reads them; if none does, the first that found broken ones explains.

    >>> read_calls('[TOOL_CALLS] [{"name": "f", "arguments": {}}]').calls
    (ToolCall(name='f', arguments={}, id='call_0'),)
    """
    tried = [dialect.parse(text, specs) for dialect in sorted(dialects(), key=lambda one: one.tried)]
    found = next((parsed for parsed in tried if parsed.calls), None)
    return found or next((parsed for parsed in tried if parsed.error), tried[0])
