"""The agent's tools: those of SWE-v0, and a ``submit`` that speaks of tasks in general."""

from __future__ import annotations

from turnwise.envs.swe.actions import create, edit, search, shell, view
from turnwise.tools.core import Tool, tool


def submit() -> None:
    """Say that the task is done: tests that you do not see decide."""


TOOLS: tuple[Tool, ...] = tuple(tool(each) for each in (shell, view, search, edit, create, submit))
