"""OpenEnv: environments that a server of its protocol keeps. `turnwise worlds add openenv`"""

from __future__ import annotations

from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/OpenEnv-v0"


class OpenEnvEnv(ForeignEnv):
    """An episode at a server: its seed is the task, what it pays is the outcome, and nobody knows a solution.

    An action with one field of text is words; one with others is a call of the tool ``act``, unless the server offers tools of its own.
    """

    world = "openenv"
    side = Path(__file__).parent / "sides" / "openenv_side.py"
    gold_known = False
    turn_limit = 1000

    @classmethod
    def generate(cls, rng: Random, split: Split, *, url: str = "", **knobs: Json) -> Task:
        """A seed; splits have seeds of their own, and ``knobs`` are told at each reset."""
        if not url:
            raise EnvError(
                "OpenEnv-v0 has no tasks of its own.", "Name a server: openenv:http://127.0.0.1:8000."
            )
        seed = cls.seed_of(rng, split)
        return Task(
            ENV,
            f"OpenEnv at {url}, seed {seed}",
            {"url": url, "seed": seed, **({"knobs": knobs} if knobs else {})},
        )


def suite_of(path: str) -> Suite:
    """The suite ``openenv:URL``: the episodes of a server, by their seeds.

    Raises:
        EnvError: that is no address.
    """
    if not path.startswith(("http://", "https://")):
        raise EnvError(f"{path!r} is no server's address.", "Name one: openenv:http://127.0.0.1:8000.")
    path = path.rstrip("/")
    return Suite(f"openenv:{path}", ENV, f"Episodes of the OpenEnv server at {path}.", {"url": path})
