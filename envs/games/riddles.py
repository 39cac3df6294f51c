"""The three deduction games: a word (Wordle's rules), a row of colours (mastermind), a thing (twenty questions)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

from turnwise.envs.games.deduction import Deduction, only_one
from turnwise.envs.games.state import History, styled
from turnwise.envs.games.vocabulary import COLOURS, SPEAKING, WORDS
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError


class WordRiddle(Deduction):
    """Guess a five-letter word; each letter is answered yes (right place), near (elsewhere) or no."""

    def all_secrets(self) -> Sequence[str]:
        return tuple(self.options["words"]) or WORDS

    @functools.cached_property
    def _allowed(self) -> frozenset[str]:
        return frozenset(self.secrets)

    def system(self, seat: int) -> str:
        if not self.full:
            return "wordle : guess a word ."
        return (
            "Find the secret word of five letters. Each turn, write one word. Each of its letters is answered: "
            "yes (right place), near (in the word, but elsewhere) or no (not in the word, or not once more). "
            f"{self._which()}"
        )

    def _which(self) -> str:
        if self.options["words"]:
            return "It is one of the words that you are told."
        return (
            f"It is one of {len(WORDS)} common words of everyday English, in American spelling and no plurals; whatever is not "
            "among these is refused, which costs the turn."
        )

    def opening(self, position: History) -> str:
        told = self.options["words"]
        return (
            styled(f"{self.task.prompt}\nwords : {' , '.join(told)} .", self.full)
            if told
            else self.task.prompt
        )

    def read(self, words: Sequence[str]) -> str:
        spelled = words if len(words) < 5 or any(len(word) > 1 for word in words) else ("".join(words),)
        found = [word for word in spelled if word in self._allowed]
        found = [word for word in found if word not in SPEAKING] or found
        fitting = [word for word in spelled if len(word) == 5 and word not in ("guess",)]
        if not found and fitting:
            raise ToolError(f"{fitting[0]} is not one of the words .")
        return only_one(found, "word")

    def answer(self, query: str, secret: str) -> str:
        marks = marks_of(query, secret)
        return " , ".join(f"{letter} {mark}" for letter, mark in zip(query, marks, strict=True))


@functools.lru_cache(maxsize=100_000)
def marks_of(guess: str, secret: str) -> tuple[str, ...]:
    """Wordle's answer, letter by letter; a letter that stands once is matched once.

    >>> marks_of("geese", "those")
    ('no', 'no', 'no', 'yes', 'yes')
    """
    spare = [s for g, s in zip(guess, secret, strict=True) if g != s]
    marks: list[str] = []
    for g, s in zip(guess, secret, strict=True):
        if g == s:
            marks.append("yes")
        elif g in spare:
            spare.remove(g)
            marks.append("near")
        else:
            marks.append("no")
    return tuple(marks)


class ColourRiddle(Deduction):
    """Mastermind: guess a row of colours; told is how many are right, and how many are elsewhere."""

    @functools.cached_property
    def colours(self) -> Sequence[str]:
        return COLOURS[: self.options["colours"]]

    def all_secrets(self) -> Sequence[str]:
        return [" ".join(row) for row in itertools.product(self.colours, repeat=self.options["places"])]

    def system(self, seat: int) -> str:
        places = self.options["places"]
        if not self.full:
            return f"mastermind : say {places} colours ."
        return (
            f"Find the secret row of {places} colours (a colour may stand more than once). Each turn, write "
            f"{places} colours. You are told how many stand in the right place, and how many more are in the row "
            "but elsewhere."
        )

    def opening(self, position: History) -> str:
        return styled(f"{self.task.prompt}\ncolours : {' , '.join(self.colours)} .", self.full)

    def read(self, words: Sequence[str]) -> str:
        row = [word for word in words if word in self.colours]
        if len(row) != self.options["places"]:  # "red was wrong, so I try blue green white"
            rows = [one for one in self._in_a_row(words) if len(one) == self.options["places"]]
            row = rows[0] if len(rows) == 1 else row
        if len(row) != self.options["places"]:
            raise ToolError(f"say {self.options['places']} colours of {' '.join(self.colours)} .")
        return " ".join(row)

    def _in_a_row(self, words: Sequence[str]) -> Sequence[Sequence[str]]:
        """The colours that stand behind one another, with nothing but numbers and "and" between them."""
        between = [word for word in words if word != "and" and not word.isdecimal()]
        groups = itertools.groupby(between, key=self.colours.__contains__)
        return [list(group) for coloured, group in groups if coloured]

    def answer(self, query: str, secret: str) -> str:
        right, near = pegs(query, secret)
        return f"{right} right , {near} elsewhere"


def pegs(guess: str, secret: str) -> tuple[int, int]:
    """Mastermind's answer: how many places are right, and how many further colours stand elsewhere.

    >>> pegs("red red blue green", "red blue red red")
    (1, 2)
    """
    guessed, hidden = guess.split(), secret.split()
    right = sum(g == s for g, s in zip(guessed, hidden, strict=True))
    shared = sum(min(guessed.count(colour), hidden.count(colour)) for colour in set(guessed))
    return right, shared - right


class ThingRiddle(Deduction):
    """Twenty questions over a small made-up world that is told: is it …? — until the thing is named."""

    @functools.cached_property
    def world(self) -> Mapping[str, tuple[str, ...]]:
        """Each thing's properties."""
        return {name: tuple(properties) for name, properties in self.options["world"]}

    def all_secrets(self) -> Sequence[str]:
        return tuple(self.world)

    def all_queries(self) -> Sequence[str]:
        return sorted({word for properties in self.world.values() for word in properties})

    def system(self, seat: int) -> str:
        if not self.full:
            return "questions : ask is it X ? or guess Y ."
        lives = "one wrong guess loses" if self.guesses == 1 else f"{self.guesses} wrong guesses lose"
        return (
            "I think of one of these things. Each turn, ask for one property (is it red?), which I answer with "
            f"yes or no, or name the thing (guess NAME); {lives}."
        )

    def opening(self, position: History) -> str:
        lines = [f"{name} : {' , '.join(properties)} ." for name, properties in self.world.items()]
        return styled("\n".join((self.task.prompt, *lines)), self.full)

    def read(self, words: Sequence[str]) -> str:
        found = [word for word in words if word in self.world or word in self.queries]
        return only_one(found, "property or thing")

    def answer(self, query: str, secret: str) -> str:
        return "yes" if query == secret or query in self.world[secret] else "no"

    def say(self, query: str) -> str:
        if query in self.world:
            return f"guess {query}" if self.full else f"guess {query} ."
        return f"is it {query}?" if self.full else f"is it {query} ?"

    def is_guess(self, query: str) -> bool:
        return query in self.world


def riddle(task: Task) -> Deduction:
    """The deduction game of a task."""
    return {"wordle": WordRiddle, "mastermind": ColourRiddle, "questions": ThingRiddle}[task.options["game"]](
        task
    )
