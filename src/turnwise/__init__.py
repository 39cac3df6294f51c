"""Turnwise: agentic multi-turn environments, and trainers that assign credit turn by turn."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from turnwise.agents.core import Engine, Episode, Policy, Trajectory, Turn
    from turnwise.agents.evaluate import evaluate
    from turnwise.agents.rollout import play
    from turnwise.envs.core import AgentEnv, End, Kind, Transition
    from turnwise.envs.messages import Message, Messages
    from turnwise.envs.registry import get_suite, make, register, register_suite, suite_task, suite_tasks
    from turnwise.errors import TurnwiseError
    from turnwise.tasks.core import Split, Suite, Task
    from turnwise.tools.core import Tool, ToolCall, ToolError, tool

_HOMES = {
    "turnwise.agents.core": ("Engine", "Episode", "Policy", "Trajectory", "Turn"),
    "turnwise.agents.evaluate": ("evaluate",),
    "turnwise.agents.rollout": ("play",),
    "turnwise.envs.core": ("AgentEnv", "End", "Kind", "Transition"),
    "turnwise.envs.messages": ("Message", "Messages"),
    "turnwise.envs.registry": (
        "get_suite",
        "make",
        "register",
        "register_suite",
        "suite_task",
        "suite_tasks",
    ),
    "turnwise.errors": ("TurnwiseError",),
    "turnwise.tasks.core": ("Split", "Suite", "Task"),
    "turnwise.tools.core": ("Tool", "ToolCall", "ToolError", "tool"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AgentEnv", "End", "Engine", "Episode", "Kind", "Message", "Messages", "Policy", "Split", "Suite", "Task",
    "Tool", "ToolCall", "ToolError", "Trajectory", "Transition", "Turn", "TurnwiseError", "evaluate",
    "get_suite", "make", "play", "register", "register_suite", "suite_task", "suite_tasks", "tool",
]  # fmt: skip

if "gymnasium" in sys.modules:  # else `import turnwise` would wait a quarter of a second for it
    importlib.import_module("turnwise.envs")


def __getattr__(name: str) -> Any:
    # Names load on first use, so that `import turnwise` and `turnwise --help` stay light.
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'turnwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
