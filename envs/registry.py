"""Find environments and suites by name: ours, and those of installed third-party packages.

A package adds its own with one entry point whose target is a function that calls
:func:`register` and :func:`register_suite`::

    [project.entry-points."turnwise.plugins"]
    guess = "turnwise_guess:register_all"
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import gymnasium

from turnwise.envs.core import AgentEnv
from turnwise.errors import EnvError, NotFoundError, TurnwiseError
from turnwise.tasks.core import Split, Suite, Task

PLUGIN_GROUP = "turnwise.plugins"


class EnvEntry(NamedTuple):
    """A registered environment: its id and where its class is (``module:Class``)."""

    name: str
    entry_point: str
    about: str

    def load(self) -> type[AgentEnv[Any]]:
        module, _, attribute = self.entry_point.partition(":")
        return getattr(importlib.import_module(module), attribute)


_envs: dict[str, EnvEntry] = {}
_suites: dict[str, Suite] = {}


def register(name: str, entry_point: str, about: str) -> None:
    """Register an environment under a gymnasium id such as ``turnwise/Shop-v0``.

    Raises:
        EnvError: the id is taken by another class.
    """
    entry = EnvEntry(name, entry_point, about)
    if _envs.get(name, entry).entry_point != entry_point:
        raise EnvError(
            f"The environment id {name!r} is taken by {_envs[name].entry_point}.", "Choose another id."
        )
    _envs[name] = entry
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=entry_point)  # pyright: ignore[reportUnknownMemberType]


def register_suite(suite: Suite) -> None:
    """Register a suite of tasks.

    Raises:
        EnvError: the name is taken by another suite.
    """
    if _suites.get(suite.name, suite) != suite:
        raise EnvError(f"The suite name {suite.name!r} is taken.", "Choose another name.")
    _suites[suite.name] = suite


def env_entries() -> list[EnvEntry]:
    """All registered environments, by name."""
    _load_everything()
    return [_envs[name] for name in sorted(_envs)]


def suites() -> list[Suite]:
    """All registered suites, by name."""
    _load_everything()
    return [_suites[name] for name in sorted(_suites)]


def env_class(name: str) -> type[AgentEnv[Any]]:
    """The class of an environment.

    Raises:
        NotFoundError: no environment has this id; the nearest is named.
    """
    _load_everything()
    if name not in _envs:
        raise NotFoundError("environment", name, _envs)
    return _envs[name].load()


def make(name: str, **options: Any) -> AgentEnv[Any]:
    """A new environment, without gymnasium's wrappers (``gymnasium.make`` adds them).

    >>> make("turnwise/Shop-v0").turn_limit
    15
    """
    return env_class(name)(**options)


def get_suite(name: str) -> Suite:
    """The suite of this name.

    Raises:
        NotFoundError: there is none; the nearest is named.
    """
    _load_everything()
    if name not in _suites:
        raise NotFoundError("suite", name, _suites)
    return _suites[name]


def suite_task(suite: Suite, split: Split, index: int) -> Task:
    """Task ``index`` of a split: a function of the names alone."""
    return env_class(suite.env).generate(suite.rng(split, index), split, **suite.knobs)


def suite_tasks(suite: Suite, split: Split, n: int, *, start: int = 0) -> Iterator[Task]:
    """Tasks ``start … start + n − 1`` of a split."""
    generate = env_class(suite.env).generate
    for index in range(start, start + n):
        yield generate(suite.rng(split, index), split, **suite.knobs)


@functools.cache
def _load_everything() -> None:
    from turnwise.envs.builtin import register_all

    register_all()
    for entry in entry_points(group=PLUGIN_GROUP):
        try:
            entry.load()()
        except TurnwiseError:
            raise
        except Exception as error:
            raise EnvError(
                f"The plugin {entry.name!r} ({entry.value}) failed to register: {error!r}.",
                "Repair or uninstall that package.",
            ) from error
