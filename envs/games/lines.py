"""Matches on boards: tic-tac-toe, connect four and their kind."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.games.boards import Board, drop, rows_of, wins
from turnwise.envs.games.boards import moves as moves_on
from turnwise.envs.games.opponents import choose
from turnwise.envs.games.solver import best_moves, full_depth, joint_plan
from turnwise.envs.games.state import Stones
from turnwise.envs.worlds.sessions import Play, PlayOutcome, SpokenMessage
from turnwise.envs.worlds.vocabulary import NUMBERS
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

_WHERE = frozenset(("column", "cell", "col", "position", "square"))


def _number(words: Sequence[str], place: int) -> int:
    """The number that a word is, 0 where it is none, or tells how many stones stand in a row."""
    word = words[place]
    if tuple(words[place + 1 : place + 4]) in (("in", "a", "row"), ("in", "a", "line")):
        return 0
    if word in NUMBERS:
        return NUMBERS.index(word) * (word != "one")  # "the one that wins"
    return int(word) if word.isdecimal() and len(word) < 4 else 0


class LinesPlay(Play[Stones]):
    """One match. Against a script the first position is one that the agent can win, whatever the script does."""

    competitive = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        columns, rows, line = self.options["board"]
        self.board = Board(columns, rows, line, self.options["gravity"])

    def begin(self) -> Stones:
        mine, theirs = self.options["stones"]
        return Stones(mine, theirs, self.options["seat"])

    def system(self, seat: int) -> str:
        board = self.board
        where = "column" if board.gravity else "cell"
        last = board.columns if board.gravity else board.size
        if not self.full:
            return f"{board.line} in a row : say 1 to {last} ."
        falls = "Stones fall to the lowest free cell of a column. " if board.gravity else ""
        numbered = "from the left" if board.gravity else "row by row from the top left"
        return (
            f"Get {board.line} of your stones in a row (across, down or diagonally) before the other does. {falls}"
            f"x are your stones, o the other's, _ is free. Each turn, write the number of a {where}, 1 to {last}, "
            f"counted {numbered}."
        )

    def opening(self, position: Stones) -> str:
        return f"{self.task.prompt}\n{self._shown(position)}"

    def seat(self, position: Stones) -> int:
        return position.seat

    def move(self, position: Stones, said: SpokenMessage) -> PlayOutcome[Stones]:
        told = self._put(position, self._read(position, said.words), by_agent=position.seat == 0)
        if told.end is not None or self.two_sided:
            return told
        mine, theirs, _ = told.position
        depth = self.options["depth"]
        cell = choose(self.options["opponent"], self.board, mine, theirs, said.chance("opponent"), depth)
        return self._put(told.position, cell, by_agent=False)

    def moves(self, position: Stones) -> int:
        first = self.begin()
        return (position.mine | position.theirs).bit_count() - (first.mine | first.theirs).bit_count()

    def forfeit(self, position: Stones) -> PlayOutcome[Stones]:
        scores = (1.0, 0.0) if position.seat else (0.0, 1.0)
        end = EndReason.SOLVED if position.seat else EndReason.FAILED
        return PlayOutcome(position, "you forfeit .", end, scores, "other forfeits : you win .")

    def gold(self, position: Stones) -> str:
        """The best move; between two agents the next one of a shortest game that the agent wins."""
        mine, theirs, seat = position
        if self.two_sided:
            plan = joint_plan(self.board, mine, theirs, for_mover=seat == 0)
            return self._said(plan[0] if plan else moves_on(self.board, mine | theirs)[0])
        depth = min(full_depth(self.board, mine, theirs), self.options["ahead"])
        return self._said(best_moves(self.board, mine, theirs, depth)[0])

    def rival(self, position: Stones, rng: Random) -> str:
        """Minimax of the task's depth."""
        mine, theirs, _ = position
        return self._said(choose("minimax", self.board, mine, theirs, rng, self.options["depth"]))

    def demonstrate(self, position: Stones, rng: Random) -> str:
        """Looks two stones ahead half of the time, else does anything."""
        mine, theirs, _ = position
        opponent = "random" if rng.random() < 0.5 else "minimax"
        return self._said(choose(opponent, self.board, mine, theirs, rng, 2))

    def admissible(self, position: Stones) -> Sequence[str]:
        return [self._said(cell) for cell in sorted(moves_on(self.board, position.mine | position.theirs))]

    def known(self, position: Stones) -> Hashable:
        """The board as the mover sees it; nothing is hidden, and neither seat nor history matter."""
        return (self.board, self.options["opponent"], position.mine, position.theirs)

    def _put(self, position: Stones, cell: int, *, by_agent: bool) -> PlayOutcome[Stones]:
        stones = position.mine | 1 << cell
        after = Stones(position.theirs, stones, 1 - position.seat if self.two_sided else 0)
        if wins(self.board, stones, cell):
            return self._over(after, by_agent)
        if (stones | position.theirs).bit_count() == self.board.size:
            return self._over(after, None)
        return PlayOutcome(after, self._shown(after))

    def _over(self, after: Stones, won: bool | None) -> PlayOutcome[Stones]:
        if won is None:
            return PlayOutcome(after, "a draw .", EndReason.FAILED, (0.5, 0.5), "a draw .")
        scores = (1.0, 0.0) if won else (0.0, 1.0)
        text, farewell = ("you win .", "you lose .")
        if not self.two_sided and not won:
            text, farewell = farewell, text
        return PlayOutcome(after, text, EndReason.SOLVED if won else EndReason.FAILED, scores, farewell)

    def _read(self, position: Stones, words: Sequence[str]) -> int:
        numbers = {_number(words, place) for place in range(len(words))} - {0}
        named = {_number(words, place) for place in range(1, len(words)) if words[place - 1] in _WHERE} - {0}
        numbers = named if len(named) == 1 else numbers
        offered = self.admissible(position)
        if len(numbers) != 1 or not {str(one) for one in numbers}.issubset(offered):
            raise ToolError(f"say one of {' '.join(sorted(offered, key=int))} .")
        number = numbers.pop() - 1
        return drop(self.board, position.mine | position.theirs, number) if self.board.gravity else number

    def _said(self, cell: int) -> str:
        return str((cell % self.board.columns if self.board.gravity else cell) + 1)

    def _shown(self, position: Stones) -> str:
        return "\n".join(rows_of(self.board, position.mine, position.theirs))
