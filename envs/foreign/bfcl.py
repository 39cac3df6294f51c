"""BFCL v4: function calls of one turn and of several, judged by its own checkers. `turnwise worlds add bfcl`"""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/BFCL-v0"


class BfclEnv(ForeignEnv):
    """A row of a category; calls are judged as published, and in rows of several turns words end a turn."""

    world = "bfcl"
    side = Path(__file__).parent / "sides" / "bfcl_side.py"
    turn_limit = 120
    words_end = "words without a call are the answer, or end the turn"
    calls_end = "in rows of one turn the first calls are the answer, whatever their arguments"
    copies = "the request names the arguments"

    @classmethod
    def generate(
        cls, rng: Random, split: Split, *, category: str = "", index: int | None = None, **knobs: Json
    ) -> Task:
        """A row of a category: the one of ``index``, or any."""
        if not category or knobs:
            raise EnvError("BFCL-v0 has no tasks of its own.", "Name a category: bfcl:simple_python.")
        row = rng.randrange(_categories()[category]) if index is None else index
        options: dict[str, Json] = {"category": category, "index": row}
        if not category.startswith("multi_turn"):
            options["turn_limit"] = 1  # the first message is the answer, also one that cannot be read
        if category == "live_relevance":
            options["gold_known"] = False  # any call is right
        return Task(ENV, f"BFCL v4 {category}, row {row}", options)


@functools.cache
def _categories() -> dict[str, int]:
    return BfclEnv.ask_world()


def suite_of(path: str) -> Suite:
    """The suite ``bfcl:CATEGORY``: its rows in their order, the same in each split.

    Raises:
        NotFoundError: there is no such category.
    """
    if path not in _categories():
        raise NotFoundError("category of BFCL", path, _categories())
    size = _categories()[path]
    return Suite(f"bfcl:{path}", ENV, f"BFCL v4's {path}.", {"category": path}, size, listed=True)
