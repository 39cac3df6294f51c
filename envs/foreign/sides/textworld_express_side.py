"""TextWorldExpress's side: a game of a published fold, in its own Java process. Runs in the world's interpreter."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

from textworld_express import TextWorldExpressEnv  # type: ignore[import-not-found]

_NO_LIMIT = 2**30  # turns are counted elsewhere


class TextWorldExpressSide:
    """The simulator with one game."""

    def __init__(self) -> None:
        self.env = TextWorldExpressEnv(envStepLimit=_NO_LIMIT)
        self.score = 0.0

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Generate the game of a seed."""
        text, info = self.env.reset(
            seed=options["seed"], gameFold=options["fold"], gameName=options["game"],
            gameParams=options.get("parameters", ""), generateGoldPath=True,
        )  # fmt: skip
        self.score = 0.0
        return {"text": f"{info['taskDescription']}\n\n{text}", "admissible": sorted(info["validActions"])}

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Act; what is paid is what the score rose by. A score below 0 counts as 0."""
        text, _, done, info = self.env.step(" ".join(act["text"].split()))
        before, self.score = self.score, max(0.0, float(info["score"]))
        over = done or info["tasksuccess"] or info["taskfailure"]
        end = ("solved" if info["tasksuccess"] else "failed") if over else None
        paid = {"outcome": (1.0 if end == "solved" else self.score) - before}
        return {"text": text, "rewards": paid, "end": end, "admissible": sorted(info["validActions"])}

    def gold(self) -> list[str]:
        """The simulator's own way."""
        return list(self.env.getGoldActionSequence())

    def list(self, asked: dict[str, Any]) -> Any:
        """The names of all games, or the seeds of one in each fold."""
        if "game" not in asked:
            return sorted(self.env.getGameNames())
        self.env.load(asked["game"], "")
        folds = {
            "train": self.env.getValidSeedsTrain,
            "dev": self.env.getValidSeedsDev,
            "test": self.env.getValidSeedsTest,
        }
        return {name: list(seeds()) for name, seeds in folds.items()}


SIDE = TextWorldExpressSide
