"""ScienceWorld's side: a variation of a task, in the simulator's own Java process. Runs in the world's interpreter."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

from scienceworld import ScienceWorldEnv  # type: ignore[import-not-found]

_NO_LIMIT = 2**30  # turns are counted elsewhere


class ScienceWorldSide:
    """The simulator with one task."""

    def __init__(self) -> None:
        self.env = ScienceWorldEnv("", envStepLimit=_NO_LIMIT)
        self.score = 0.0

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Load a variation."""
        self.env.load(
            options["task"], options["variation"], options.get("simplification", ""), generateGoldPath=True
        )
        first, _ = self.env.reset()
        self.score = 0.0
        return {"text": f"{self.env.get_task_description()}\n\n{first}"}

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Act; what is paid is what the score rose by. A score below 0 counts as 0, as published."""
        text, _, done, info = self.env.step(" ".join(act["text"].split()) or "look")
        before, self.score = self.score, max(0.0, info["score"] / 100)
        end = ("solved" if self.score >= 1.0 else "failed") if done else None
        return {"text": text, "rewards": {"outcome": self.score - before}, "end": end}

    def gold(self) -> list[str]:
        """The simulator's own way."""
        return list(self.env.get_gold_action_sequence())

    def list(self, asked: dict[str, Any]) -> Any:
        """The names of all tasks, or the variations of one in each split."""
        if "task" not in asked:
            return sorted(self.env.get_task_names())
        self.env.load(asked["task"], 0, "", generateGoldPath=False)
        splits = {
            "train": self.env.get_variations_train,
            "dev": self.env.get_variations_dev,
            "test": self.env.get_variations_test,
        }
        return {name: list(variations()) for name, variations in splits.items()}


SIDE = ScienceWorldSide
