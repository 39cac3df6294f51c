"""State of an episode: everything that was called. The live server follows from it."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.tools.core import ToolCall


class McpState(NamedTuple):
    """Everything that was called, in order, and a digest of all that was heard. The live server follows from it."""

    task: str
    calls: tuple[ToolCall, ...] = ()
    heard: str = ""
