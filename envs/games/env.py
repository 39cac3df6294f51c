"""``turnwise/Games-v0``: deduction games, and matches against scripts or between two agents."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from turnwise.envs.core import Transition
from turnwise.envs.games.knobs import GamesKnobs
from turnwise.envs.games.lines import LinesPlay
from turnwise.envs.games.poker import PokerPlay
from turnwise.envs.games.riddles import riddle
from turnwise.envs.games.state import styled
from turnwise.envs.games.tasks import draw_task
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.one_command import spoken
from turnwise.envs.worlds.sessions import Play, PlayOutcome, PlaySession, SessionEnv, SpokenMessage
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_FILLERS = frozenset(("the", "please", "then", "my", "will"))
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\(?\d{1,2}[.):])[ \t]*", re.MULTILINE)
_ANSWERS = re.compile(
    r"<(?:action|answer)>|\n[^\n:]*:[^\n]*\Z", re.IGNORECASE
)  # there is one beside the first line
_MOST_LINES = 40


def _bare(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z]+|\d+", text.lower()))


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

    def transition(self, state: PlaySession, action: Message) -> Transition[PlaySession]:
        """Play a message's last line, or its first where that alone is a move and reasons follow."""
        lines = [] if action.tool_calls else action.content.strip().split("\n")
        if not 1 < len(lines) <= _MOST_LINES:
            return super().transition(state, action)
        offered = {_bare(said) for said in state.play.admissible(state.position)}
        alone = {_bare(said) for said in (*lines, _ITEM.sub("", action.content))} & offered
        if _bare(lines[0]) in offered and not _ANSWERS.search(action.content):
            return super().transition(state, dataclasses.replace(action, content=lines[0]))
        try:
            return super().transition(state, action)
        except ToolError:
            if len(alone) != 1:
                raise
            return super().transition(state, dataclasses.replace(action, content=" ".join(alone.pop())))

    def _answer(self, state: PlaySession, told: PlayOutcome[Any]) -> Transition[PlaySession]:
        full = state.play.full
        told = told._replace(text=styled(told.text, full), farewell=styled(told.farewell, full))
        return super()._answer(state, told)

    def hear(self, action: Message) -> SpokenMessage:
        return SpokenMessage(spoken(action, _FILLERS))
