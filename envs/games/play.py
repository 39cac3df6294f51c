"""What every game is to the environment: a frozen description of one task, and functions of positions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from turnwise.envs.core import End
from turnwise.tasks.core import Json, Task

Position = TypeVar("Position", bound=Hashable)
AGENTS = ("agent", "opponent")
"""Seats of the episode. The agent is evaluated; who moves first is the task's choice."""


class Told(NamedTuple, Generic[Position]):
    """What a move did: the next position, what the next mover is told, what the two have earned."""

    position: Position
    text: str
    end: End | None = None
    scores: tuple[float, float] = (0.0, 0.0)  # of the agent and of its opponent, once it is over
    farewell: str = ""  # what the one who did not move hears of the end


class Play(Generic[Position]):
    """One task of one game. Positions are immutable; chance comes from the caller."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.options: dict[str, Json] = dict(task.options)
        self.full: bool = task.options["text"] == "full"
        self.two_sided: bool = task.options.get("opponent") == "agent"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.task.id})"

    def begin(self) -> Position:
        """The first position."""
        raise NotImplementedError

    def system(self, seat: int) -> str:
        """Rules, and how to act."""
        raise NotImplementedError

    def opening(self, position: Position) -> str:
        """What the mover is told before its first move."""
        raise NotImplementedError

    def seat(self, position: Position) -> int:
        """Whose move it is: 0 the agent's, 1 its opponent's."""
        return 0

    def move(
        self, position: Position, words: Sequence[str], chance: Callable[[str], Random]
    ) -> Told[Position]:
        """What the mover's words do, and a scripted opponent's answer to it.

        Raises:
            ToolError: they mean nothing here.
        """
        raise NotImplementedError

    def moves(self, position: Position) -> int:
        """How many moves were made; asked of matches between two agents."""
        raise NotImplementedError

    def is_new(self, position: Position) -> bool:
        """Whether the mover of a match between two agents has not moved yet: it is told the opening."""
        return self.moves(position) == 1

    def forfeit(self, position: Position) -> Told[Position]:
        """The mover of a match between two agents loses it."""
        raise NotImplementedError

    def gold(self, position: Position) -> str:
        """The mover's best words."""
        raise NotImplementedError

    def demonstrate(self, position: Position, rng: Random) -> str:
        """What a mediocre player says."""
        raise NotImplementedError

    def potential(self, position: Position) -> float | None:
        """How far the task has come, where there is such a measure."""
        return None

    def admissible(self, position: Position) -> Sequence[str]:
        """All, or many, words that mean something."""
        raise NotImplementedError

    def known(self, position: Position) -> Hashable:
        """What the mover knows of the position: equal knowledge, equal decision."""
        raise NotImplementedError


class GameState(NamedTuple):
    """A moment of an episode."""

    play: Play[Any]
    position: Any
