"""``turnwise/Games-v0``: deduction games, and matches against scripts or between two agents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from turnwise.envs.core import Transition
from turnwise.envs.games.lines import LinesPlay
from turnwise.envs.games.play import AGENTS, GameState, Play, Told
from turnwise.envs.games.poker import PokerPlay
from turnwise.envs.games.riddles import riddle
from turnwise.envs.games.tasks import GamesKnobs, draw_task
from turnwise.envs.messages import Message, Messages
from turnwise.envs.worlds.commands import CommandEnv, Kept, spoken
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_FILLERS = frozenset(("the", "please", "then", "my", "will"))
FAULTS = 3
"""How many senseless messages two agents may write in one match; who writes the last of them forfeits it."""


def play_of(task: Task) -> Play[Any]:
    """The game of a task."""
    match task.options["game"]:
        case "tictactoe" | "connect4":
            return LinesPlay(task)
        case "kuhn":
            return PokerPlay(task)
        case _:
            return riddle(task)


_play = Kept(play_of)


class GamesEnv(CommandEnv[GameState]):
    """One game a task. With the option ``opponent: agent`` a second policy plays against the agent."""

    turn_limit = 8
    floor: ClassVar[float] = 0.25
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "wordle": {"game": "wordle", "words": 100},
        "mastermind": {"game": "mastermind", "turn_limit": 10},
        "questions": {"game": "questions", "things": 16},
        "connect4": {"game": "connect4", "opponent": "greedy", "opening": [8, 16], "turn_limit": 20},
        "kuhn": {"game": "kuhn", "opponent": "random", "hands": 10, "turn_limit": 30},
    }

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One, or two where the current task is a match between agents."""
        two = self._snapshot is not None and self._snapshot.task.options.get("opponent") == "agent"
        return AGENTS if two else AGENTS[:1]

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(GamesKnobs, knobs, "games"))

    def initial(self, task: Task) -> tuple[GameState, Messages]:
        play = _play(task)
        state = GameState(play, play.begin())
        return state, Messages((Message("user", self._with_hint(state, play.opening(state.position))),))

    def mover(self, state: GameState) -> str:
        return AGENTS[state.play.seat(state.position)]

    def system_for(self, agent: str) -> str:
        return self.now.state.play.system(AGENTS.index(agent))

    def transition(self, state: GameState, action: Message) -> Transition[GameState]:
        play, position = state
        try:
            told = play.move(position, spoken(action, _FILLERS), self.rng)
        except ToolError:
            if not play.two_sided or self.now.turn + 1 - play.moves(position) < FAULTS:
                raise
            return self._answer(state, play.forfeit(position))
        return self._answer(state, told)

    def _answer(self, state: GameState, told: Told[Any]) -> Transition[GameState]:
        play, seat = state.play, state.play.seat(state.position)
        after = GameState(play, told.position)
        grounding = {"grounding": self.grounding} if self.grounding else {}
        if told.end is None:
            text = told.text
            if play.two_sided and play.is_new(told.position):
                text = play.opening(told.position)
            hints: dict[str, Json] = {}
            if play.options["commands"] != "hidden":
                hints = {"commands": list(play.admissible(told.position))}
            return Transition(after, self._with_hint(after, text), grounding, None, hints)
        rewards = {"outcome": told.scores[seat], **grounding}
        if not play.two_sided:
            return Transition(after, told.text, rewards, told.end)
        other = AGENTS[1 - seat]
        return Transition(
            after,
            told.text,
            rewards,
            told.end,
            others={other: {"outcome": told.scores[1 - seat]}},
            told={other: told.farewell},
        )

    def _with_hint(self, state: GameState, text: str) -> str:
        return f"{text}\n{self._hint(state)}" if state.play.options["commands"] == "shown" else text

    def gold(self, state: GameState) -> str:
        return state.play.gold(state.position)

    def demonstrate(self, state: GameState, rng: Random) -> str:
        return state.play.demonstrate(state.position, rng)

    def potential(self, state: GameState) -> float | None:
        return state.play.potential(state.position)

    def admissible(self, state: GameState) -> Sequence[str]:
        return state.play.admissible(state.position)

    def state_key(self, state: GameState) -> str:
        """Of what the mover knows: the same where it cannot tell two states apart."""
        what = repr((type(state.play).__name__, state.play.known(state.position)))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()
