"""Games and conversations: one frozen description of a task, positions as values, one or two agents.

A :class:`Play` knows the rules of one task and, where the other side is a script, what that answers. With the
task option ``two_sided`` the other side is a second agent, and the play only keeps the rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from turnwise.envs.core import EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.worlds.commands import CommandEnv
from turnwise.tasks.core import Json, Split, Task

Position = TypeVar("Position", bound=Hashable)
FAULTS = 3
"""Meaningless messages that end a match between two agents; who writes the last of them forfeits it."""


class SpokenMessage(NamedTuple):
    """A message as the rules see it."""

    words: tuple[str, ...]  # in lower case
    text: str = ""  # what the other side reads
    chance: Callable[[str], Random] = Random


class PlayOutcome(NamedTuple, Generic[Position]):
    """Outcome of a message: the next position, what the next agent is told, what the two have earned."""

    position: Position
    text: str
    end: EndReason | None = None
    scores: tuple[float, float] = (0.0, 0.0)  # of the agent and of the other side, once it is over
    farewell: str = ""  # what the one who did not move hears of the end
    details: Mapping[str, Json] = {}


class Play(Generic[Position]):
    """One task. Seat 0 is the agent's, seat 1 the other side's; all methods speak of the one who moves."""

    competitive: ClassVar[bool] = False  # whether stalling could spare the current agent a loss

    def __init__(self, task: Task) -> None:
        self.task = task
        self.options: dict[str, Json] = dict(task.options)
        self.full: bool = task.options["text"] == "full"
        self.two_sided: bool = task.options.get("two_sided", False)
        self.language = Split(task.options.get("language", Split.TRAIN))  # whose words the other side has

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.task.id})"

    def begin(self) -> Position:
        """The first position."""
        raise NotImplementedError

    def system(self, seat: int) -> str:
        """Rules, and how to act."""
        raise NotImplementedError

    def opening(self, position: Position) -> str:
        """Return what the current agent is told before its first move."""
        raise NotImplementedError

    def seat(self, position: Position) -> int:
        """Return the seat whose move it is."""
        return 0

    def move(self, position: Position, said: SpokenMessage) -> PlayOutcome[Position]:
        """Carry out the current agent's message, with a script's answer to it.

        Raises:
            ToolError: it means nothing here.
        """
        raise NotImplementedError

    def settle(self, position: Position) -> tuple[float, float]:
        """Return what the two have earned when the turn limit ends it here."""
        return 0.0, 0.0

    def moves(self, position: Position) -> int:
        """Count the moves that were made; asked where two agents play."""
        raise NotImplementedError

    def is_new(self, position: Position) -> bool:
        """Say whether the current one of two agents has not moved yet: it is told the opening, too."""
        return self.moves(position) == 1

    def forfeit(self, position: Position) -> PlayOutcome[Position]:
        """The current agent of a competitive match between two agents loses it."""
        raise NotImplementedError

    def gold(self, position: Position) -> str:
        """The gold policy's message for the agent that moves."""
        raise NotImplementedError

    def rival(self, position: Position, rng: Random) -> str:
        """Return the move of a strong player who plays for itself; the script ``rival`` (envs/baselines.py)."""
        return self.gold(position)

    def demonstrate(self, position: Position, rng: Random) -> str:
        """The message of an imperfect scripted policy."""
        raise NotImplementedError

    def potential(self, position: Position) -> float | None:
        """Return how far the task has come, where there is such a measure."""
        return None

    def admissible(self, position: Position) -> Sequence[str]:
        """All, or many, meaningful messages."""
        raise NotImplementedError

    def known(self, position: Position) -> Hashable:
        """Return what the moving agent knows of the position; equal knowledge means an equal decision."""
        raise NotImplementedError


class PlaySession(NamedTuple):
    """A moment of an episode."""

    play: Play[Any]
    position: Any


class SessionEnv(CommandEnv[PlaySession]):
    """An environment whose tasks are plays. Subclasses define ``seats``, :meth:`play_of` and :meth:`hear`."""

    seats: ClassVar[tuple[str, str]] = ("agent", "other")

    def play_of(self, task: Task) -> Play[Any]:
        """The play of a task."""
        raise NotImplementedError

    def hear(self, action: Message) -> SpokenMessage:
        """A message as the rules see it.

        Raises:
            ToolError: there is nothing in it.
        """
        raise NotImplementedError

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One, or two where the current task is between agents."""
        two = self._snapshot is not None and self._snapshot.task.options.get("two_sided", False)
        return self.seats if two else self.seats[:1]

    def initial(self, task: Task) -> tuple[PlaySession, Messages]:
        play = self.play_of(task)
        state = PlaySession(play, play.begin())
        text = self._with_hint(state, play.opening(state.position))
        return state, Messages((Message("user", text),))

    def current_agent(self, state: PlaySession) -> str:
        return self.seats[state.play.seat(state.position)]

    def system_for(self, agent: str) -> str:
        return self.now.state.play.system(self.seats.index(agent))

    def transition(self, state: PlaySession, action: Message) -> Transition[PlaySession]:
        told = state.play.move(state.position, self.hear(action)._replace(chance=self.rng))
        return self._answer(state, self._in_time(told))

    def refused(self, state: PlaySession, action: Message, why: str) -> Transition[PlaySession]:
        """Answers a meaningless message; in a match, too many of them forfeit it, so stalling does not pay."""
        play, position = state
        if play.two_sided and play.competitive and self.now.turn + 1 - play.moves(position) >= FAULTS:
            return self._answer(state, play.forfeit(position))
        return self._answer(state, self._in_time(PlayOutcome(position, why)))

    def _in_time(self, told: PlayOutcome[Any]) -> PlayOutcome[Any]:
        """The same, or the end where this was the last turn."""
        if told.end is not None or self.now.turn + 1 < self._turn_limit(self.task):
            return told
        scores = self.now.state.play.settle(told.position)
        return told._replace(end=EndReason.TURN_LIMIT, scores=scores, farewell="no turn is left .")

    def _answer(self, state: PlaySession, told: PlayOutcome[Any]) -> Transition[PlaySession]:
        play, seat = state.play, state.play.seat(state.position)
        after = PlaySession(play, told.position)
        rewards = self._grounded(state, after)
        details = dict(told.details)
        if told.end is None:
            new = play.two_sided and play.is_new(told.position) and told.position != state.position
            text = play.opening(told.position) if new else told.text
            if play.options["commands"] != "hidden":
                details["commands"] = list(play.admissible(told.position))
            return Transition(after, self._with_hint(after, text), rewards, None, details)
        rewards["outcome"] = told.scores[seat]
        if not play.two_sided:
            return Transition(after, told.text, rewards, told.end, details)
        other = self.seats[1 - seat]
        others = {other: {"outcome": told.scores[1 - seat]}}
        return Transition(after, told.text, rewards, told.end, details, others, {other: told.farewell})

    def _with_hint(self, state: PlaySession, text: str) -> str:
        return f"{text}\n{self._hint(state)}" if state.play.options["commands"] == "shown" else text

    def gold(self, state: PlaySession) -> str:
        return state.play.gold(state.position)

    def demonstrate(self, state: PlaySession, rng: Random) -> str:
        return state.play.demonstrate(state.position, rng)

    def rival(self, state: PlaySession, rng: Random) -> str:
        """The message of a strong opponent that plays for its own benefit."""
        return state.play.rival(state.position, rng)

    def potential(self, state: PlaySession) -> float | None:
        return state.play.potential(state.position)

    def admissible(self, state: PlaySession) -> Sequence[str]:
        return state.play.admissible(state.position)

    def state_key(self, state: PlaySession) -> str:
        """Of what the current agent knows: the same where it cannot tell two states apart."""
        what = repr((type(state.play).__name__, state.play.known(state.position)))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()
