"""Tasks of the games: knobs → secrets, first positions, deals."""

from __future__ import annotations

from random import Random
from typing import Literal

import pydantic

from turnwise.envs.games import boards
from turnwise.envs.games.boards import Board
from turnwise.envs.games.kuhn import DEALS, information_sets
from turnwise.envs.games.poker import aim_of
from turnwise.envs.games.riddles import riddle
from turnwise.envs.games.words import COLOURS, PROPERTIES, WORDS, make_world
from turnwise.envs.worlds.knobs import WorldKnobs, first_drawn, in_split
from turnwise.envs.worlds.sessions import FAULTS
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/Games-v0"
_SHAPES = {"tictactoe": (3, 3, 3, False), "connect4": (7, 6, 4, True)}


class GamesKnobs(WorldKnobs, extra="forbid", frozen=True):
    """What a suite of games may set."""

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
        board = _board(self) if self.game in _SHAPES else None
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


def draw_task(rng: Random, split: Split, knobs: GamesKnobs) -> Task:
    """A game that no other split can draw, and that can be won."""

    def draw(rng: Random) -> Task | None:
        match knobs.game:
            case "tictactoe" | "connect4":
                return _lines(rng, split, knobs)
            case "kuhn":
                return _poker(rng, split, knobs)
            case _:
                return _riddle(rng, split, knobs)

    return first_drawn(draw, rng, split, "game", attempts=20_000)


def _shared(knobs: GamesKnobs) -> dict[str, Json]:
    return {name: getattr(knobs, name) for name in ("game", "text", "commands", "turn_limit")}


# --- deduction ---------------------------------------------------------------------------------------


def _riddle(rng: Random, split: Split, knobs: GamesKnobs) -> Task | None:
    options: dict[str, Json] = {**_shared(knobs), "guesses": knobs.guesses}
    if knobs.game == "wordle":
        told = rng.sample(WORDS, knobs.words)
        options |= {"words": told, "secret": rng.choice(told or WORDS)}
        key: Json = [sorted(told), options["secret"]]
        prompt = ("Find the word.", "find the word .")
    elif knobs.game == "mastermind":
        options |= {"colours": knobs.colours, "places": knobs.places}
        options["secret"] = " ".join(rng.choices(COLOURS[: knobs.colours], k=knobs.places))
        key = [knobs.colours, options["secret"]]
        prompt = ("Find the row of colours.", "find the row .")
    else:
        world = make_world(rng, knobs.things, knobs.families, knobs.values)
        options |= {"world": world, "secret": rng.choice(world)[0]}
        key = [sorted(world), options["secret"]]
        prompt = ("Which thing do I think of?", "which thing ?")
    if not in_split(split, ENV, knobs.game, key):
        return None
    task = Task(ENV, prompt[knobs.text == "compact"], options)
    return task if riddle(task).solvable(knobs.turn_limit) else None


# --- matches -----------------------------------------------------------------------------------------


def _board(knobs: GamesKnobs) -> Board:
    columns, rows, line, gravity = _SHAPES[knobs.game]
    return Board(knobs.columns or columns, knobs.rows or rows, knobs.line or line, gravity)


def _lines(rng: Random, split: Split, knobs: GamesKnobs) -> Task | None:
    board = _board(knobs)
    position = _opened(board, rng.randint(*knobs.opening), rng)
    if position is None or not in_split(split, ENV, knobs.game, board, position):
        return None
    mine, theirs = position
    two_sided = knobs.opponent == "agent"
    ahead = 2 * knobs.win_in - 1
    # A win that needs exactly so many stones of one's own: sooner is worth more (boards.value).
    if not two_sided and boards.value(board, mine, theirs, ahead) != boards.WIN - ahead + 1:
        return None
    options: dict[str, Json] = {
        **_shared(knobs),
        "board": [board.columns, board.rows, board.line],
        "gravity": board.gravity,
        "stones": [mine, theirs],
        "seat": rng.randrange(2) if two_sided else 0,
        "opponent": knobs.opponent,
        "two_sided": two_sided,
        "depth": knobs.depth or (0 if board.size <= 9 else 4),
        "ahead": ahead,
    }
    return Task(ENV, "Win." if knobs.text == "full" else "win .", options)


def _opened(board: Board, stones: int, rng: Random) -> tuple[int, int] | None:
    """A position after so many random stones, seen by its mover; None if it is over."""
    mine = theirs = 0
    for _ in range(stones):
        offered = boards.moves(board, mine | theirs)
        if not offered:
            return None
        cell = rng.choice(sorted(offered))
        if boards.wins(board, mine | 1 << cell, cell):
            return None
        mine, theirs = theirs, mine | 1 << cell
    return (mine, theirs) if (mine | theirs).bit_count() < board.size else None


def _poker(rng: Random, split: Split, knobs: GamesKnobs) -> Task | None:
    options: dict[str, Json] = {
        **_shared(knobs),
        "deals": [list(rng.choice(DEALS)) for _ in range(knobs.hands)],
        "seat": rng.randrange(2),
        "match": rng.getrandbits(32),
        "two_sided": knobs.opponent == "agent",
    }
    prompt = "Win chips." if knobs.text == "full" else "win chips ."
    if not in_split(split, ENV, "kuhn", options["match"]):
        return None
    if knobs.opponent == "agent":
        return Task(ENV, prompt, options)
    options["habit"] = [rng.randrange(2) for _ in information_sets()]
    aim = aim_of(Task(ENV, prompt, options))
    return Task(ENV, prompt, {**options, "aim": aim}) if 2 * aim >= knobs.hands else None
