"""Questions whose answer is run or parsed: Python functions, SQL, shell lines, JSON, worked solutions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from .kinds import Row
from .questions import CAPITALS, PEOPLE, WORDS, expression, seats, shopping, travel


class Problem(NamedTuple):
    """A function to be written; ``cases`` are arguments and what it returns for them."""

    name: str
    told: str
    solution: str
    cases: Sequence[tuple[Any, Any]]

    @property
    def key(self) -> str:
        return self.told

    @property
    def prompt(self) -> str:
        return f"Write a Python function `{self.name}` that takes one argument and {self.told} Reply with code only."

    @property
    def stub(self) -> str:
        """A function of that name that is wrong."""
        return f"def {self.name}(*args):\n    return 'nothing'\n"


_TEMPLATES: tuple[tuple[str, str, str, str], ...] = (
    ("count_multiples", "returns how many numbers of the list are multiples of {k}.", "sum(x % {k} == 0 for x in value)", "numbers"),
    ("shifted", "returns the lower-case word with each letter moved forward by {k} (after z comes a).", "''.join(chr((ord(c) - 97 + {k}) % 26 + 97) for c in value)", "word"),
    ("chunks", "cuts the list into lists of {k}; the last may be shorter.", "[value[i:i + {k}] for i in range(0, len(value), {k})]", "numbers"),
    ("digit_powers", "returns the sum of the powers with exponent {k} of the decimal digits of a number.", "sum(int(d) ** {k} for d in str(value))", "number"),
    ("every", "returns every {k}-th character of the string, from the first one on.", "value[::{k}]", "word"),
    ("rotated", "moves the first {k} items of the list to its end (lists are long enough).", "value[{k}:] + value[:{k}]", "numbers"),
    ("top", "returns the {k} largest numbers of the list, largest first.", "sorted(value, reverse=True)[:{k}]", "numbers"),
    ("clipped", "limits each number of the list to the range from -{k} to {k}.", "[max(-{k}, min({k}, x)) for x in value]", "numbers"),
    ("windows", "returns the sums of all runs of {k} neighbours in the list.", "[sum(value[i:i + {k}]) for i in range(len(value) - {k} + 1)]", "numbers"),
    ("stretched", "repeats each character of the string {k} times.", "''.join(c * {k} for c in value)", "word"),
    ("pairs_apart", "counts the pairs of neighbours in the list whose difference is at most {k}.", "sum(abs(a - b) <= {k} for a, b in zip(value, value[1:]))", "numbers"),
    ("without", "returns the list without its numbers above {k}0.", "[x for x in value if x <= {k}0]", "numbers"),
    ("scaled", "returns the list with each number times {k}, smallest first.", "sorted(x * {k} for x in value)", "numbers"),
    ("padded", "fills the number up with zeros on the left to {k}2 characters and returns the string.", "str(value).zfill({k}2)", "number"),
)  # fmt: skip


def _inputs(rng: Random, sort: str) -> list[Any]:
    if sort == "numbers":
        return [[rng.randint(-60, 120) for _ in range(rng.randint(16, 20))] for _ in range(4)]
    if sort == "word":
        return [rng.choice(WORDS) + rng.choice(WORDS) for _ in range(4)]
    return [rng.randint(100, 99_999) for _ in range(4)]


def problem(rng: Random) -> Problem:
    """Draw a function to be written."""
    name, told, expr, sort = rng.choice(_TEMPLATES)
    k = rng.randint(2, 15)
    body = expr.format(k=k)
    function: Callable[[Any], Any] = eval(f"lambda value: {body}")
    cases = [(value, function(value)) for value in _inputs(rng, sort)]
    return Problem(name, told.format(k=k), f"def {name}(value):\n    return {body}\n", cases)


def problems(rng: Random, count: int, seen: set[str]) -> list[Problem]:
    """Draw functions that are not in ``seen``, which then has them."""
    found: list[Problem] = []
    while len(found) < count:
        drawn = problem(rng)
        if drawn.key not in seen:
            seen.add(drawn.key)
            found.append(drawn)
    return found


def cased(one: Problem) -> Row:
    """A problem whose ground truth is a JSON of cases."""
    truth = {"function": one.name, "cases": [[value, said] for value, said in one.cases]}
    return Row(one.key, one.prompt, json.dumps(truth), one.solution)


def asserted(one: Problem) -> Row:
    """A problem whose ground truth is a program with assertions."""
    return Row(one.key, one.prompt, assertions(one), one.solution)


def assertions(one: Problem) -> str:
    """An assertion for each case."""
    return "".join(f"assert repr({one.name}({value!r})) == {said!r}\n" for value, said in _printed(one))


def _printed(one: Problem) -> Sequence[tuple[Any, str]]:
    """The cases with their results as Python writes them, which no object can equal but that very text."""
    return [(value, repr(said)) for value, said in one.cases]


def unittests(one: Problem, extra: str = "") -> str:
    """A test case with a test method for each case, and ``extra`` methods."""
    methods = "".join(
        f"    def test_{number}(self):\n        self.assertEqual(repr({one.name}({value!r})), {said!r})\n\n"
        for number, (value, said) in enumerate(_printed(one))
    )
    return f"import unittest\n\n\nclass Tests(unittest.TestCase):\n{methods}{extra}"


def worked(rng: Random) -> Row:
    """A word problem whose answer column is a worked solution that ends with ``#### N``, as in GSM8K."""
    drawn = rng.choice((shopping, travel, seats))(rng)
    prompt = drawn.prompt.rpartition("?")[0] + "? End your answer with #### and the number."
    said = f"We take it step by step and come to {drawn.answer}.\n#### {drawn.answer}"
    return drawn._replace(key=f"worked {drawn.key}", prompt=prompt, answer=said)


def boxed(rng: Random) -> Row:
    """An equation whose answer stands in a box."""
    x, a, b = rng.randint(-40, 60), rng.randint(2, 15), rng.randint(1, 80)
    prompt = f"Solve {a}x + {b} = {a * x + b} for x. Put the final answer in \\boxed{{}}."
    gold = f"Subtract {b} and divide by {a}: x = {x}. The result is \\boxed{{{x}}}."
    return Row(f"solve {a} {b} {x}", prompt, str(x), gold)


def tagged(rng: Random) -> Row:
    """A computation whose answer stands in tags."""
    drawn = expression(rng)
    prompt = (
        drawn.prompt.partition("?")[0].rstrip(".")
        + ". Think first, then write <answer>, the number, and </answer>."
    )
    return Row(
        f"tagged {drawn.key}",
        prompt,
        drawn.answer,
        f"<think>Multiply, then add.</think><answer>{drawn.answer}</answer>",
    )


def record(rng: Random) -> Row:
    """A note from which a JSON object is to be read."""
    who, city, age = rng.choice(PEOPLE), rng.choice(tuple(CAPITALS.values())), rng.randint(19, 90)
    order, items = rng.randint(1000, 9999), rng.randint(2, 30)
    prompt = (
        f"Note: {who} from {city}, {age} years old, ordered {items} items; the order has number {order}. "
        "Reply with a JSON object that has the keys name, city, age, order and items."
    )
    found = {"name": who, "city": city, "age": age, "order": order, "items": items}
    return Row(f"record {who} {order} {items} {age}", prompt, json.dumps(found))


_QUESTIONS: tuple[tuple[str, str], ...] = (
    ("the names of people older than {n}, in alphabetical order", "SELECT name FROM people WHERE age > {n} ORDER BY name"),
    ("how many people are at most {n} years old", "SELECT COUNT(*) FROM people WHERE age <= {n}"),
    ("each city with the age of its oldest person, by city, only where that age is at least {n}", "SELECT city, MAX(age) FROM people GROUP BY city HAVING MAX(age) >= {n} ORDER BY city"),
    ("the sum of the ages of those whose age differs from {n}", "SELECT SUM(age) FROM people WHERE age <> {n}"),
)  # fmt: skip


def query(rng: Random) -> Row:
    """A question about a small table; the ground truth has the statements that make it and the rows that should come out."""
    import sqlite3

    people = [
        (name, rng.randint(18, 80), rng.choice(("Lima", "Oslo", "Riga"))) for name in rng.sample(PEOPLE, 7)
    ]
    values = ", ".join(f"('{name}', {age}, '{city}')" for name, age, city in people)
    setup = f"CREATE TABLE people (name TEXT, age INTEGER, city TEXT); INSERT INTO people VALUES {values};"
    told, statement = rng.choice(_QUESTIONS)
    n = rng.randint(25, 60)
    base = sqlite3.connect(":memory:")
    base.executescript(setup)
    rows = [list(row) for row in base.execute(statement.format(n=n))]
    base.close()
    prompt = f"Table people(name TEXT, age INTEGER, city TEXT). Write an SQLite query for {told.format(n=n)}."
    return Row(f"query {told} {n}", prompt, json.dumps({"setup": setup, "rows": rows}), statement.format(n=n))


_LINES: tuple[tuple[str, str], ...] = (
    ("prints how many lines of log.txt contain {word}", "grep -c {word} log.txt"),
    ("prints the lines of log.txt that contain {word}, sorted", "grep {word} log.txt | sort"),
    ("prints the last {n} lines of log.txt", "tail -n {n} log.txt"),
    ("prints the first {n} lines of log.txt in reversed order", "head -n {n} log.txt | tac"),
)


def shell_line(rng: Random) -> Row:
    """A line of shell; the ground truth has the file and what should be printed."""
    names = rng.sample(WORDS, 4)
    lines = [f"{rng.randint(10, 23)}:{rng.randint(10, 59)} {rng.choice(names)} done" for _ in range(12)]
    told, command = rng.choice(_LINES)
    word, n = lines[3].split()[1], rng.randint(2, 11)
    there = [line for line in lines if word in line]
    said = {0: [str(len(there))], 1: sorted(there), 2: lines[-n:], 3: lines[:n][::-1]}[
        [line[0] for line in _LINES].index(told)
    ]
    truth = {"files": {"log.txt": "\n".join(lines) + "\n"}, "stdout": "\n".join(said) + "\n"}
    prompt = f"Write one line of bash that {told.format(word=word, n=n)}. Reply with the line only."
    return Row(prompt, prompt, json.dumps(truth), command.format(word=word, n=n))
