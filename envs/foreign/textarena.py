"""TextArena: games for one player. `turnwise worlds add textarena`"""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/TextArena-v0"


class TextArenaEnv(ForeignEnv):
    """A game for one player; the score is the game's own, held between 0 and 1, and nobody knows a solution."""

    world = "textarena"
    side = Path(__file__).parent / "sides" / "textarena_side.py"
    gold_known = False
    turn_limit = 60

    @classmethod
    def generate(cls, rng: Random, split: Split, *, game: str = "", **knobs: Json) -> Task:
        """A seed of a game; splits have seeds of their own."""
        if not game or knobs:
            raise EnvError("TextArena-v0 has no tasks of its own.", "Name a game: textarena:Mastermind-v0.")
        seed = cls.seed_of(rng, split)
        return Task(ENV, f"TextArena {game}, seed {seed}", {"game": game, "seed": seed})


@functools.cache
def _games() -> frozenset[str]:
    return frozenset(TextArenaEnv.ask_world())


def suite_of(path: str) -> Suite:
    """The suite ``textarena:GAME``.

    Raises:
        NotFoundError: there is no such game.
    """
    if path not in _games():
        raise NotFoundError("game of TextArena", path, _games())
    return Suite(f"textarena:{path}", ENV, f"TextArena's {path}, alone.", {"game": path})
