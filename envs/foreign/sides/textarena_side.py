"""TextArena's side: a game for one player. Runs in the world's interpreter."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import random
from typing import Any

import numpy  # type: ignore[import-not-found]
import textarena  # type: ignore[import-not-found]


class TextArenaSide:
    """A game and its one player."""

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Begin a game; it draws from the global generators, which are this process's own."""
        random.seed(options["seed"])
        numpy.random.seed(options["seed"] % 2**32)
        self.game = textarena.make(f"{options['game']}-raw")
        self.game.reset(num_players=1, seed=options["seed"])
        return {"text": self._told()}

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Make a move; at the end the game says what it was worth."""
        done, _ = self.game.step(act["text"])
        if not done:
            return {"text": self._told() or "(nothing)"}
        rewards, info = self.game.close()
        paid = rewards.get(0) if rewards else None
        score = float(paid) if isinstance(paid, (int, float)) else 0.0  # some games give a sentence
        why = info.get(0, info) if isinstance(info, dict) else {}
        text = str(paid if isinstance(paid, str) else why.get("reason") or "The game is over.")
        score = min(1.0, max(0.0, score))
        return {"text": text, "rewards": {"outcome": score}, "end": "solved" if score >= 1.0 else "failed"}

    def gold(self) -> None:
        """Nobody knows it."""

    def list(self, asked: dict[str, Any]) -> list[str]:
        """The names of all games."""
        return sorted(name for name in textarena.envs.registration.ENV_REGISTRY if name.count("-raw") == 0)

    def _told(self) -> str:
        """What the game said since it was last asked, without the player's own words."""
        _, messages = self.game.get_observation()
        return "\n".join(str(message[1]) for message in messages if message[0] != 0).strip()


SIDE = TextArenaSide
