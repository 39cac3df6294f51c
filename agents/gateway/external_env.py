"""A world outside of Turnwise, as an environment: its actions are what the user says of the agent's turns."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

OWN = "turnwise/Own-v0"
"""Its id. It has no tasks to draw, so that it is registered where one is made or replayed, and not with the others."""


class ExternalEnv(AgentEnv[int]):
    """Pays what it is told to: ``{"rewards": {"outcome": 1.0}, "end": "solved"}``. The state counts what was told."""

    reward_components: Mapping[str, RewardKind] = MappingProxyType(
        {"outcome": RewardKind.OUTCOME, "step": RewardKind.STEP}
    )
    turn_limit = 1_000_000
    blocking = False

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        try:
            data: Any = json.loads(action.content)
            rewards = {name: float(data["rewards"][name]) for name in data.get("rewards", {})}
            end = None if data.get("end") is None else EndReason(data["end"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ToolError(f"This is no verdict: {error!r:.100}") from None
        unknown = sorted({*rewards} - {*self.reward_components})
        if unknown or not all(math.isfinite(value) for value in rewards.values()):
            raise ToolError(f"Rewards are finite numbers under {', '.join(self.reward_components)}.")
        return Transition(state + 1, "", rewards, end)

    def gold(self, state: int) -> str:
        return verdict({"outcome": 1.0}, EndReason.SOLVED)


def external_task(prompt: str) -> Task:
    """A task whose world is the user's own."""
    register_external()
    return Task(OWN, prompt)


def register_external() -> None:
    """Register the environment in this process."""
    register(OWN, f"{__name__}:ExternalEnv", "A world outside of Turnwise, which pays what it is told to.")


def verdict(rewards: Mapping[str, float], end: EndReason | None) -> str:
    """The action with which rewards are paid, and the episode ends."""
    return json.dumps({"rewards": dict(rewards), "end": None if end is None else end.value})
