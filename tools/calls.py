"""Result of reading a model's text; the ways in which models write calls are in :mod:`turnwise.tools.dialects`."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.tools.core import ToolCall


class ParsedText(NamedTuple):
    """A model's text, taken apart: what it says, what it calls, what could not be read."""

    content: str
    calls: tuple[ToolCall, ...]
    error: str | None = None
