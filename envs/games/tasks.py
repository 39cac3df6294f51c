"""Tasks of the games: knobs → secrets, first positions, deals."""

from __future__ import annotations

from random import Random

from turnwise.envs.games.boards import Board, moves, wins
from turnwise.envs.games.knobs import GamesKnobs, board_of
from turnwise.envs.games.kuhn import DEALS, information_sets
from turnwise.envs.games.poker import aim_of
from turnwise.envs.games.riddles import riddle
from turnwise.envs.games.solver import WIN, value
from turnwise.envs.games.vocabulary import COLOURS, WORDS, make_world
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/Games-v0"


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


def _lines(rng: Random, split: Split, knobs: GamesKnobs) -> Task | None:
    board = board_of(knobs)
    position = _opened(board, rng.randint(*knobs.opening), rng)
    if position is None or not in_split(split, ENV, knobs.game, board, position):
        return None
    mine, theirs = position
    two_sided = knobs.opponent == "agent"
    ahead = 2 * knobs.win_in - 1
    # A win that needs exactly so many stones of one's own: sooner is worth more (solver.value).
    if not two_sided and value(board, mine, theirs, ahead) != WIN - ahead + 1:
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
        offered = moves(board, mine | theirs)
        if not offered:
            return None
        cell = rng.choice(sorted(offered))
        if wins(board, mine | 1 << cell, cell):
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
