"""The knobs of the games: what a suite may set, checked."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.games.boards import Board
from turnwise.envs.games.vocabulary import COLOURS, PROPERTIES, WORDS
from turnwise.envs.worlds.knobs import WorldKnobs
from turnwise.envs.worlds.sessions import FAULTS

SHAPES = {"tictactoe": (3, 3, 3, False), "connect4": (7, 6, 4, True)}


class GamesKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of games."""

    game: Literal["wordle", "mastermind", "questions", "tictactoe", "connect4", "kuhn"] = "wordle"
    turn_limit: int = pydantic.Field(8, ge=1)
    # deduction
    guesses: int = pydantic.Field(0, ge=0)  # wrong ones that end the game; 0: as many as there are turns
    words: int = pydantic.Field(0, ge=0, le=len(WORDS))  # told, of which the secret is one; 0: all, not told
    colours: int = pydantic.Field(6, ge=2, le=len(COLOURS))
    places: int = pydantic.Field(4, ge=2, le=5)
    things: int = pydantic.Field(12, ge=4, le=60)
    families: int = pydantic.Field(4, ge=2, le=len(PROPERTIES))  # of properties
    values: int = pydantic.Field(3, ge=2, le=4)  # of each family
    # matches
    opponent: Literal["random", "greedy", "minimax", "agent"] = "minimax"  # agent: a second policy
    depth: int = pydantic.Field(0, ge=0)  # stones that minimax looks ahead; 0: to the end
    columns: int = pydantic.Field(0, ge=0, le=9)  # of connect four; 0: as usual
    rows: int = pydantic.Field(0, ge=0, le=9)
    line: int = pydantic.Field(0, ge=0, le=5)
    opening: tuple[int, int] = (0, 4)  # stones put at random beforehand, at least and at most
    win_in: int = pydantic.Field(2, ge=1, le=4)  # stones with which the agent can force a win; scripts only
    hands: int = pydantic.Field(1, ge=1, le=50)  # of poker; against a habit at least four

    @pydantic.model_validator(mode="after")
    def _long_enough(self) -> GamesKnobs:
        board = board_of(self) if self.game in SHAPES else None
        moves = board.size if board else 3 * self.hands
        matched = board is not None or self.game == "kuhn"
        if matched and self.opponent == "agent" and self.turn_limit < moves + FAULTS:
            raise ValueError(f"turn_limit must be at least {moves + FAULTS}, so that stalling spares no loss")
        return self

    @pydantic.model_validator(mode="after")
    def _fits(self) -> GamesKnobs:
        if self.values**self.families < 2 * self.things:
            raise ValueError("things must be at most half of values ** families")
        if self.game == "kuhn" and self.opponent != "agent" and self.hands < 4:
            raise ValueError("against a scripted opponent kuhn needs at least four hands")
        if (
            self.game == "kuhn"
            and self.opponent in ("greedy", "minimax")
            and "opponent" in self.model_fields_set
        ):
            raise ValueError("kuhn's opponent is random (a habit drawn for each task) or agent")
        return self


def board_of(knobs: GamesKnobs) -> Board:
    """The board of a game of lines."""
    columns, rows, line, gravity = SHAPES[knobs.game]
    return Board(knobs.columns or columns, knobs.rows or rows, knobs.line or line, gravity)
