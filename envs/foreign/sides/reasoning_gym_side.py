"""reasoning-gym's side: one item of a data set is one task, judged by the data set itself. Runs in the world's interpreter."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import reasoning_gym  # type: ignore[import-not-found]
from reasoning_gym.factory import DATASETS  # type: ignore[import-not-found]
from reasoning_gym.utils import extract_answer  # type: ignore[import-not-found]


class ReasoningGymSide:
    """An item of a data set."""

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Make the item of a seed, and show its question."""
        knobs = options.get("knobs", {})
        self.data = reasoning_gym.create_dataset(options["dataset"], size=1, seed=options["seed"], **knobs)
        self.item = self.data[0]
        return {"text": self.item["question"]}

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Judge an answer: what stands in the last <answer> tags, or all that was said."""
        answer = extract_answer(act["text"]) or act["text"].strip()
        try:
            score = float(self.data.score_answer(answer, self.item))
        except Exception as error:  # noqa: BLE001 (some scorers raise on what they cannot read, which is a wrong answer)
            return {
                "text": f"That cannot be read: {type(error).__name__}.",
                "rewards": {"outcome": 0.0},
                "end": "failed",
            }
        end = "solved" if score >= 1.0 else "failed"
        return {"text": f"Score: {score:g}", "rewards": {"outcome": score}, "end": end}

    def gold(self) -> list[str] | None:
        """The item's own answer."""
        return None if self.item["answer"] is None else [str(self.item["answer"])]

    def list(self, asked: dict[str, Any]) -> list[str]:
        """The names of all data sets."""
        return sorted(DATASETS)


SIDE = ReasoningGymSide
