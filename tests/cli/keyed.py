"""A plugin whose environment is given keys, and which says them when something fails, as careless code does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from random import Random
from typing import Any

from turnwise import (
    AgentEnv,
    EndReason,
    Message,
    Split,
    Suite,
    Task,
    Transition,
    register,
    register_suite,
)
from turnwise.errors import InfraError


class Keyed(AgentEnv[int]):
    system = "Say letters."
    turn_limit = 3
    blocking = False

    def __init__(
        self, api_key: str = "", server: str = "", headers: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.given = f"{api_key} {server} {dict(headers or {})}"
        if os.environ.get("KEYED_EXPECTS", api_key) != api_key:
            raise InfraError("The key is wrong.", "Give the right one.")

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        return Task(
            "test/Keyed-v0", f"Letters, please ({3 * rng.randrange(10**6) + list(Split).index(split)})."
        )

    def initial(self, task: Task) -> tuple[int, str]:
        if os.environ.get("KEYED_FAILS") == "infra":
            raise InfraError(f"Cannot connect: {self.given}", f"Is this right: {self.given}?")
        if os.environ.get("KEYED_FAILS") == "bug":
            raise ValueError(f"Cannot connect: {self.given}")
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        share = sum(letter in "abcdefghijklm" for letter in action.content) / max(1, len(action.content))
        end = (
            (EndReason.SOLVED if share > 0.3 else EndReason.FAILED)
            if state == 1 or not action.content
            else None
        )
        return Transition(state + 1, f"{share:.1f}", {"outcome": share / 2}, end)

    def gold(self, state: int) -> str:
        return "abcabc"


def register_keyed() -> None:
    register("test/Keyed-v0", "keyed:Keyed", "Say early letters.")
    register_suite(Suite("test/keyed", "test/Keyed-v0", "Any tasks."))
