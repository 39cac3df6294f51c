"""Scripted opponents for games of lines, and exact strength against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from turnwise.envs.games.boards import Board, moves, winning_moves, wins
from turnwise.envs.games.solver import best_moves, full_depth

Opponent: TypeAlias = Literal["random", "greedy", "minimax"]
MoveProbabilities: TypeAlias = Callable[[int, int], Mapping[int, float]]
"""(mover's stones, other's stones) → probability of each cell."""


def candidates(opponent: Opponent, board: Board, mine: int, theirs: int, depth: int = 0) -> list[int]:
    """The cells among which an opponent chooses evenly.

    ``greedy`` wins if it can, else blocks, else does anything; ``minimax`` looks ``depth`` stones ahead (0: to
    the end of the game).
    """
    if opponent == "minimax":
        return best_moves(board, mine, theirs, depth or full_depth(board, mine, theirs))
    if opponent == "greedy":
        urgent = winning_moves(board, mine, theirs) or winning_moves(board, theirs, mine)
        if urgent:
            return urgent
    return moves(board, mine | theirs)


def choose(opponent: Opponent, board: Board, mine: int, theirs: int, rng: Random, depth: int = 0) -> int:
    """The cell that an opponent takes."""
    return rng.choice(candidates(opponent, board, mine, theirs, depth))


def as_policy(opponent: Opponent, board: Board, depth: int = 0) -> MoveProbabilities:
    """A scripted opponent as probabilities of moves."""

    def probabilities(mine: int, theirs: int) -> Mapping[int, float]:
        cells = candidates(opponent, board, mine, theirs, depth)
        return dict.fromkeys(cells, 1.0 / len(cells))

    return probabilities


class MatchOdds(NamedTuple):
    """Probabilities of how a game ends, for the policy that is judged."""

    win: float
    draw: float
    loss: float

    @property
    def score(self) -> float:
        """A win counts 1, a draw a half."""
        return self.win + self.draw / 2


def strength(
    board: Board, policy: MoveProbabilities, opponent: MoveProbabilities, *, begins: bool = True
) -> MatchOdds:
    """The exact probabilities of winning, drawing and losing from the empty board, by enumeration.

    For boards with few positions (tic-tac-toe has 5,478). ``policy`` is asked once per position that occurs.
    """
    known: dict[tuple[int, int, bool], MatchOdds] = {}

    def record(mine: int, theirs: int, judged: bool) -> MatchOdds:
        key = (mine, theirs, judged)
        if key not in known:
            total = [0.0, 0.0, 0.0]
            for cell, chance in (policy if judged else opponent)(mine, theirs).items():
                if chance <= 0.0:
                    continue
                for i, part in enumerate(_after(mine, theirs, cell, judged)):
                    total[i] += chance * part
            known[key] = MatchOdds(*total)
        return known[key]

    def _after(mine: int, theirs: int, cell: int, judged: bool) -> MatchOdds:
        stones = mine | 1 << cell
        if wins(board, stones, cell):
            return MatchOdds(1.0, 0.0, 0.0) if judged else MatchOdds(0.0, 0.0, 1.0)
        if (stones | theirs).bit_count() == board.size:
            return MatchOdds(0.0, 1.0, 0.0)
        return record(theirs, stones, not judged)

    return record(0, 0, begins)
