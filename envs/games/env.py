"""``turnwise/Games-v0``: deduction games, and matches against scripts or between two agents."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from turnwise.envs.games.knobs import GamesKnobs
from turnwise.envs.games.lines import LinesPlay
from turnwise.envs.games.poker import PokerPlay
from turnwise.envs.games.riddles import riddle
from turnwise.envs.games.tasks import draw_task
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.one_command import spoken
from turnwise.envs.worlds.sessions import Play, SessionEnv, SpokenMessage
from turnwise.tasks.core import Json, Split, Task

_FILLERS = frozenset(("the", "please", "then", "my", "will"))


def _make(task: Task) -> Play[Any]:
    match task.options["game"]:
        case "tictactoe" | "connect4":
            return LinesPlay(task)
        case "kuhn":
            return PokerPlay(task)
        case _:
            return riddle(task)


_play: WorldCache[Play[Any]] = WorldCache(_make)


class GamesEnv(SessionEnv):
    """One game a task. With the knob ``opponent: agent`` a second policy plays against the agent."""

    seats = ("agent", "opponent")
    turn_limit = 8
    max_trivial_score: ClassVar[float] = 0.4
    max_trivial_scores: ClassVar[Mapping[str, float]] = dict.fromkeys(
        ("games/tictactoe", "games/connect4", "games/connect4-small", "games/kuhn-self"), 1.0
    )  # the check plays both agents by one script, and one of them wins: about half, in many games
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "wordle": {"game": "wordle", "words": 100},
        "mastermind": {"game": "mastermind", "places": 3, "turn_limit": 10},
        "questions": {"game": "questions", "things": 16},
        "connect4": {"game": "connect4", "opponent": "greedy", "opening": [8, 16], "turn_limit": 20},
        "kuhn": {"game": "kuhn", "opponent": "random", "hands": 10, "turn_limit": 30},
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(GamesKnobs, knobs, "games"))

    def play_of(self, task: Task) -> Play[Any]:
        return _play(task)

    def hear(self, action: Message) -> SpokenMessage:
        return SpokenMessage(spoken(action, _FILLERS))
