"""Tasks that are in a set twice, and test tasks that are in the train set: word for word, or worded anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

from . import sources
from .kinds import IN_TRAIN, TWICE, Bank, Draft, Maker, Row
from .problems import cased, problems, record
from .questions import (
    BARE,
    LETTERS,
    PEOPLE,
    choice,
    days_between,
    digits,
    divisor,
    later,
    options_of,
    remainder,
    seats,
    shopping,
    sum_choice,
    travel,
)

Copy = Callable[[Row, Random], tuple[Row, Row]]
"""A row → that row, as it stands in the set, and its copy."""


def exact(row: Row, rng: Random) -> tuple[Row, Row]:
    return row, row


def spacing(row: Row, rng: Random) -> tuple[Row, Row]:
    told = row.prompt.replace(". ", ".\n").replace("?", " ?")
    return row, row._replace(prompt=told[0].lower() + told[1:] + " ")


def renumbered(row: Row, rng: Random) -> tuple[Row, Row]:
    first, second = rng.sample(range(1, 200), 2)
    return (
        row._replace(prompt=f"Exercise {first}. {row.prompt}"),
        row._replace(prompt=f"Exercise {second}. {row.prompt}"),
    )


def polite(row: Row, rng: Random) -> tuple[Row, Row]:
    return row, row._replace(prompt=f"Hello! Could you help me with this? {row.prompt} Thanks a lot.")


def reworded(row: Row, rng: Random) -> tuple[Row, Row]:
    others = [wording for wording in row.wordings if wording != row.prompt]
    return row, row._replace(prompt=rng.choice(others))


def other_name(row: Row, rng: Random) -> tuple[Row, Row]:
    (name,) = [name for name in PEOPLE if name in row.prompt]
    other = rng.choice([each for each in PEOPLE if each != name])
    return row, row._replace(prompt=row.prompt.replace(name, other))


def options_moved(row: Row, rng: Random) -> tuple[Row, Row]:
    lines = row.prompt.splitlines()
    options = [line[3:] for line in lines[1:5]]
    moved = options[1:] + options[:1]
    told = "\n".join((lines[0], options_of(moved), lines[5]))
    return row, row._replace(prompt=told, answer=LETTERS[moved.index(options[LETTERS.index(row.answer)])])


def function_renamed(row: Row, rng: Random) -> tuple[Row, Row]:
    truth = json.loads(row.answer)
    name, other = truth["function"], rng.choice(("solve", "transform", "compute", "run_task"))
    told = row.prompt.replace(f"`{name}`", f"`{other}`")
    gold = row.gold.replace(f"def {name}", f"def {other}")
    return row, row._replace(prompt=told, gold=gold, answer=json.dumps({**truth, "function": other}))


def fields_asked_otherwise(row: Row, rng: Random) -> tuple[Row, Row]:
    note, _, rest = row.prompt.partition(" Reply with ")
    return row, row._replace(prompt=f"Extract {rest.removesuffix('.')} from this. {note}")


_WORDED = (shopping, seats, travel, remainder, divisor, digits, days_between, later)
_WAYS: tuple[tuple[str, Copy, tuple[Maker, ...]], ...] = (
    ("word for word", exact, BARE),
    ("spacing and case", spacing, _WORDED),
    ("another exercise number", renumbered, _WORDED),
    ("politely", polite, _WORDED),
    ("worded anew", reworded, _WORDED),
    ("another name", other_name, (shopping,)),
)


def _pair(way: Copy, row: Row, kind: str, name: str, rng: Random) -> tuple[Row, Row]:
    first, second = way(row, rng)
    return first, second._replace(key=f"{row.key} again", kind=kind, mechanism=name, twin=row.key)


def same_twice(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Sets with rows that are copies of others, beside rows of the same templates that differ in their numbers."""
    rng = bank.rng
    for start in range(0, len(_WAYS), 2):
        rows: list[Row] = []
        for name, way, makers in _WAYS[start : start + 2]:
            for row in bank.draw(makers, 2):
                rows += _pair(way, row, TWICE, name, rng)
        yield Draft("quiz", sources.EXACT, [*rows, *bank.draw(_WORDED, 6)])
    drawn = bank.draw((choice, sum_choice), 2)
    pairs = [
        each for row in drawn for each in _pair(options_moved, row, TWICE, "options in another order", rng)
    ]
    yield Draft("choices", sources.LETTER, [*pairs, *bank.draw((sum_choice,), 5)])
    code = [cased(one) for one in problems(rng, 7, seen)]
    pairs = [
        each for row in code[:2] for each in _pair(function_renamed, row, TWICE, "function renamed", rng)
    ]
    yield Draft("python", sources.ALL_CASES, [*pairs, *code[2:]])


def test_in_train(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Test sets some of whose tasks are in the train set."""
    rng = bank.rng
    for start in range(0, len(_WAYS), 2):
        train, test = bank.draw(_WORDED, 6), bank.draw(_WORDED, 4)
        for name, way, makers in _WAYS[start : start + 2]:
            for row in bank.draw(makers, 2):
                first, second = _pair(way, row, IN_TRAIN, name, rng)
                train.append(first)
                test.append(second)
        yield Draft("quiz", sources.EXACT, test, train=train)
    train, test = bank.draw((record,), 4), bank.draw((record,), 3)
    for row in bank.draw((record,), 2):
        first, second = _pair(fields_asked_otherwise, row, IN_TRAIN, "asked otherwise", rng)
        train.append(first)
        test.append(second)
    yield Draft("notes", sources.JSON, test, train=train)
    code = [cased(one) for one in problems(rng, 8, seen)]
    train, test = code[:3], code[3:6]
    for row in code[6:]:
        first, second = _pair(function_renamed, row, IN_TRAIN, "function renamed", rng)
        train.append(first)
        test.append(second)
    yield Draft("python", sources.ALL_CASES, test, train=train)
