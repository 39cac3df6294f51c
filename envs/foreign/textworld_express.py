"""TextWorldExpress: eight games of TextWorld's kind, with its published folds. `turnwise worlds add textworld-express`"""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/TextWorldExpress-v0"


class TextWorldExpressEnv(ForeignEnv):
    """A game of a seed; a turn is a command in words, and the score is the simulator's."""

    system = (
        "Do the task with one command a turn, such as: look around, inventory, open door to west, take knife."
    )
    world = "textworld-express"
    side = Path(__file__).parent / "sides" / "textworld_express_side.py"
    turn_limit = 100
    max_trivial_score = (
        0.8  # in 100 turns, choosing blindly among the commands that are offered finds most coins
    )
    gold_varies = "the simulator draws one of several ways, without a seed"

    @classmethod
    def generate(
        cls, rng: Random, split: Split, *, game: str = "", index: int | None = None, **knobs: Json
    ) -> Task:
        """A seed of the published fold: the one of ``index``, or any."""
        if not game or set(knobs) - {"parameters"}:
            raise EnvError(
                "TextWorldExpress-v0 has no tasks of its own.", "Name a game: textworld-express:coin."
            )
        published = _seeds(game)[split.value]
        seed = rng.choice(published) if index is None else published[index % len(published)]
        options = {"game": game, "fold": split.value, "seed": seed, **knobs}
        return Task(ENV, f"TextWorldExpress {game}, seed {seed}", options)


@functools.cache
def _games() -> frozenset[str]:
    return frozenset(TextWorldExpressEnv.ask_world())


@functools.cache
def _seeds(game: str) -> dict[str, list[int]]:
    return TextWorldExpressEnv.ask_world(game=game)


def suite_of(path: str) -> Suite:
    """The suite ``textworld-express:GAME``.

    Raises:
        NotFoundError: there is no such game.
    """
    if path not in _games():
        raise NotFoundError("game of TextWorldExpress", path, _games())
    splits = {split: len(found) for split, found in _seeds(path).items()}
    about = f"TextWorldExpress's {path}."
    return Suite(f"textworld-express:{path}", ENV, about, {"game": path}, listed=True, splits=splits)
