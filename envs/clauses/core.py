"""What every clause shares: its subject, and how it says that something is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.core import AgentEnv
from turnwise.envs.walks import Walk, sample_tasks, walk
from turnwise.tasks.core import Split

FEW = 4
"""Tasks on which the laws are tested (E6 plays as many as it is told)."""


class Broken(Exception):
    """A clause does not hold; the text says what was seen."""


class Subject(NamedTuple):
    """What is checked: an environment, and how many tasks of each split E6 plays."""

    name: str
    cls: type[AgentEnv[Any]]
    tasks: int

    def walks(self, *scripts: str, env: AgentEnv[Any] | None = None) -> Iterator[Walk]:
        """A few training episodes of each script."""
        env = env or self.cls()
        try:
            for index, task in enumerate(sample_tasks(self.name, Split.TRAIN, FEW)):
                for script in scripts:
                    yield walk(env, task, script, seed=index)
        finally:
            env.close()


Clause: TypeAlias = Callable[[Subject], str]
"""Returns what it saw, in a sentence; raises :class:`Broken` with what is wrong."""


def require(holds: bool, otherwise: str) -> None:
    """Raise :class:`Broken` unless ``holds``."""
    if not holds:
        raise Broken(otherwise)
