"""Subject that the tests of all requirements share, and the exception that says that something is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from turnwise.envs.check.walks import Walk, sample_tasks, walk
from turnwise.envs.core import AgentEnv
from turnwise.tasks.core import Split

FEW, QUICK = 4, 1
"""Tasks on which requirements are tested, and in a quick check."""


class Broken(Exception):
    """A requirement is not met; the text says what was seen.

    ``unsteady``: one state was seen to lead to two things, so where the difference is kept is looked for.
    """

    def __init__(self, seen: str, *, unsteady: bool = False, remedy: str = "") -> None:
        super().__init__(seen)
        self.unsteady = unsteady
        self.remedy = remedy  # where nothing better is found


class Subject(NamedTuple):
    """The environment under test, how many tasks of each split E6 plays, and of what: all of its suites, or the one named."""

    name: str
    cls: type[AgentEnv[Any]]
    tasks: int
    played: str
    few: int  # tasks on which requirements are tested (E6 plays as many as it is asked to)
    unseen: list[str]  # what could not be looked at, each with its reason

    def missed(self, what: str) -> None:
        """Note what could not be looked at, once."""
        if what not in self.unseen:
            self.unseen.append(what)

    def walks(self, *scripts: str, env: AgentEnv[Any] | None = None) -> Iterator[Walk]:
        """A few training episodes of each script."""
        env = env or self.cls()
        try:
            for index, task in enumerate(sample_tasks(self.played, Split.TRAIN, self.few)):
                for script in scripts:
                    yield walk(env, task, script, seed=index)
        finally:
            env.close()


RequirementTest: TypeAlias = Callable[[Subject], str]
"""Returns what it saw, in a sentence; raises :class:`Broken` with what is wrong."""


def require(holds: bool, otherwise: str, *, unsteady: bool = False, remedy: str = "") -> None:
    """Raise :class:`Broken` unless ``holds``."""
    if not holds:
        raise Broken(otherwise, unsteady=unsteady, remedy=remedy)
