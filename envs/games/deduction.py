"""Deduction games (Wordle, mastermind, twenty questions): a secret, questions and answers.

The solver does not look at the secret. It keeps the secrets that fit every answer so far and asks what leaves
the fewest in the worst case (Knuth 1977, "The computer as master mind"), of a sample where they are many.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.games.state import Asked, History
from turnwise.envs.worlds.sessions import Play, PlayOutcome, SpokenMessage
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

_QUERIES, _SECRETS = 24, 160  # how many the solver looks at


class Deduction(Play[History]):
    """One secret to be found. Subclasses say what can be asked and how it is answered."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.secret: str = task.options["secret"]
        self.guesses: int = task.options["guesses"]  # wrong guesses that end the game; 0: any number
        self._left: dict[History, tuple[str, ...]] = {}
        self._gold: dict[History, str] = {}

    # --- what a subclass defines -----------------------------------------------------------------

    def all_secrets(self) -> Sequence[str]:
        """All possible secrets."""
        raise NotImplementedError

    def all_queries(self) -> Sequence[str]:
        """Questions that are no guesses."""
        return ()

    @functools.cached_property
    def secrets(self) -> tuple[str, ...]:
        return tuple(self.all_secrets())

    @functools.cached_property
    def queries(self) -> tuple[str, ...]:
        return tuple(self.all_queries())

    def answer(self, query: str, secret: str) -> str:
        """Return the answer to ``query`` if this is the secret."""
        raise NotImplementedError

    def read(self, words: Sequence[str]) -> str:
        """The question or guess in a player's words.

        Raises:
            ToolError: there is none.
        """
        raise NotImplementedError

    def say(self, query: str) -> str:
        """Put a query in a player's words."""
        return query

    def is_guess(self, query: str) -> bool:
        """Say whether a query names the secret."""
        return True

    def guess(self, secret: str) -> str:
        """The query that names a secret."""
        return secret

    # --- play ------------------------------------------------------------------------------------

    def begin(self) -> History:
        return ()

    def move(self, position: History, said: SpokenMessage) -> PlayOutcome[History]:
        return self.ask(position, self.read(said.words))

    def ask(self, position: History, query: str) -> PlayOutcome[History]:
        """The state after a question or guess."""
        after = (*position, Asked(query, self.answer(query, self.secret)))
        if query == self.guess(self.secret):
            return PlayOutcome(after, "right .", EndReason.SOLVED, (1.0, 0.0))
        told = f"{query} : {after[-1].answer} ."
        wrong = sum(self.is_guess(asked.query) for asked in after)
        if self.guesses and wrong >= self.guesses:
            return PlayOutcome(after, f"{told} no guess is left .", EndReason.FAILED)
        return PlayOutcome(after, told)

    def possible(self, position: History) -> tuple[str, ...]:
        """The secrets that fit every answer."""
        if position not in self._left:
            if not position:
                self._left[position] = tuple(self.secrets)
            else:
                query, heard = position[-1]
                before = self.possible(position[:-1])
                self._left[position] = tuple(s for s in before if self.answer(query, s) == heard)
        return self._left[position]

    def gold(self, position: History) -> str:
        return self.say(self.best(position))

    def best(self, position: History) -> str:
        """Return the solver's query."""
        if position not in self._gold:
            self._gold[position] = self._best(self.possible(position))
        return self._gold[position]

    def _best(self, left: Sequence[str]) -> str:
        if len(left) <= 2:
            return self.guess(left[0])
        sample = _thinned(left, _SECRETS)
        guesses = [self.guess(secret) for secret in _thinned(left, _QUERIES)]
        open_guesses = [] if self.guesses and self.queries else guesses

        def worst(query: str) -> int:
            return max(Counter(self.answer(query, secret) for secret in sample).values())

        return min((*open_guesses, *self.queries), key=worst)

    def demonstrate(self, position: History, rng: Random) -> str:
        """An imperfect scripted policy: mostly random; else a guess that may be right, or a question."""
        if rng.random() < 0.7:
            return rng.choice(self.admissible(position))
        left = self.possible(position)
        if self.queries and len(left) > 2:
            return self.say(rng.choice(self.queries))
        return self.say(self.guess(rng.choice(left)))

    def potential(self, position: History) -> float:
        """Return the share of the uncertainty, measured in bits, that is gone."""
        return 1.0 - math.log(len(self.possible(position))) / math.log(len(self.secrets))

    def admissible(self, position: History) -> Sequence[str]:
        return [self.say(query) for query in (*self.queries, *map(self.guess, self.secrets))]

    def known(self, position: History) -> Hashable:
        """Return what the player knows: the task and the answers in any order, but not the secret."""
        return (self.task.prompt, self.opening(()), tuple(sorted(set(position))), len(position))

    def solvable(self, turns: int) -> bool:
        """Say whether the solver needs at most so many turns."""
        position: History = ()
        for _ in range(turns):
            told = self.ask(position, self.best(position))
            if told.end is not None:
                return told.end is EndReason.SOLVED
            position = told.position
        return False


def _thinned(items: Sequence[str], most: int) -> Sequence[str]:
    """At most so many of the items, evenly."""
    return items if len(items) <= most else items[:: -(-len(items) // most)]


def only_one(found: Sequence[str], what: str) -> str:
    """The only thing found.

    Raises:
        ToolError: there is none, or there are several.
    """
    if len(set(found)) != 1:
        raise ToolError(f"say one {what} ." if not found else f"only one {what} a turn .")
    return found[0]
