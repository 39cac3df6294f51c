"""τ²-bench: an agent and a user on the phone, each with tools, judged by its own evaluator. `turnwise worlds add tau2`"""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/Tau2-v0"


class Tau2Env(ForeignEnv):
    """A task of a domain. The user is another agent, which any policy plays; the score is the agent's."""

    agents = ("agent", "user")
    world = "tau2"
    side = Path(__file__).parent / "sides" / "tau2_side.py"
    start, deadline = 300.0, 120.0  # its imports and data bases are large
    turn_limit = 200
    max_trivial_score = 0.6  # 19 of 50 requests of airline must be refused
    copies = "the user's instructions are the user's prompt"

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        """A task of the published list (``base``), or of its part that this split is: the one of ``index``, or any."""
        domain, whole, index = (knobs.get(name) for name in ("domain", "whole", "index"))
        if not domain or set(knobs) - {"domain", "whole", "index"}:
            raise EnvError("Tau2-v0 has no tasks of its own.", "Name a domain: tau2:airline.")
        names = _tasks()[domain]["base" if whole else split.value]
        name = names[rng.randrange(len(names)) if index is None else index]
        return Task(ENV, f"τ² {domain}, task {name}", {"domain": domain, "id": name})


@functools.cache
def _tasks() -> dict[str, dict[str, list[str]]]:
    return Tau2Env.ask_world()


def suite_of(path: str) -> Suite:
    """The suite ``tau2:DOMAIN``, its published list, or ``tau2:DOMAIN/parts``, with its published training and test parts.

    Raises:
        NotFoundError: there is no such domain.
    """
    domain, _, parts = path.partition("/")
    if domain not in _tasks() or parts not in ("", "parts"):
        raise NotFoundError("domain of τ²", path, [*_tasks(), *(f"{known}/parts" for known in _tasks())])
    found, knobs = _tasks()[domain], {"domain": domain, "whole": not parts}
    splits = {part: len(found[part]) for part in ("train", "test")} if parts else {}
    return Suite(
        f"tau2:{path}", ENV, f"τ²-bench's {path}.", knobs, len(found["base"]), listed=True, splits=splits
    )
