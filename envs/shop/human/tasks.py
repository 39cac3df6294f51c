"""Tasks of watching: a shop task, a person, and the session that the two make."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from random import Random

from turnwise.envs.shop.human.knobs import HumanKnobs
from turnwise.envs.shop.human.personas import Persona, draw_persona
from turnwise.envs.shop.human.sessions import play
from turnwise.envs.shop.human.state import HumanSession
from turnwise.envs.shop.knobs import knobs_of
from turnwise.envs.shop.tasks import draw_task as draw_shop_task
from turnwise.envs.shop.tasks import world_of
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, canonical, derive_rng, digest

ENV = "turnwise/ShopHuman-v0"
_OWN = ("whim",)


def draw_task(rng: Random, split: Split, knobs: Mapping[str, Json], turn_limit: int) -> Task:
    """A task of the shop with a person who does it. Knobs are the shop's and this environment's own."""
    own = {name: knobs[name] for name in _OWN if name in knobs}
    chosen = check_knobs(HumanKnobs, own, "shopper")
    shopping = draw_shop_task(rng, split, knobs_of({n: v for n, v in knobs.items() if n not in own}))
    options = {**shopping.options, "wish": shopping.prompt, "whim": chosen.whim}
    options |= {"query": shopping.gold["query"], "seed": digest(shopping.id, rng.getrandbits(62))}
    options["turn_limit"] = turn_limit
    persona = _persona(options["seed"])
    return Task(ENV, f"{persona.describe()}\nThe wish: {shopping.prompt}", options)


def session_of(task: Task) -> HumanSession:
    """Return the watched session of a task.

    Raises:
        EnvError: the task is no shopper's.
    """
    try:
        return _session(canonical(dict(task.options)))
    except KeyError as error:
        raise EnvError(f"This is no task of {ENV}: {error}.", "Take tasks from a shop-human suite.") from None


@functools.lru_cache(maxsize=1024)
def _session(written: str) -> HumanSession:
    """The session that a task's options, as JSON, describe."""
    options = json.loads(written)
    world = world_of(Task(ENV, options["wish"], options, {"query": options["query"]}))
    persona = _persona(options["seed"])
    rng = derive_rng(ENV, "session", options["seed"])
    return HumanSession(persona, play(world, persona, options["whim"], rng))


def _persona(seed: str) -> Persona:
    return draw_persona(derive_rng(ENV, "persona", seed))
