"""Values that a text names: ids, dates, amounts, quantities; and when two texts contradict each other."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from turnwise.envs.toolworld.facts import amounts, dates, firm_amounts
from turnwise.envs.toolworld.speech.words import normal, shape_of
from turnwise.envs.worlds.vocabulary import MONTHS, month_number, names_month

Value: TypeAlias = tuple[str, str]
"""(kind, value): two values of one kind are rivals, such as two order numbers."""

_CODE = re.compile(r"(?<![\w.@-])#?((?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9][\w-]*)(?![\w@])")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|gb|mb|k)", re.IGNORECASE)
_DAY = re.compile(r"-(\d{4}-\d\d-\d\d)$")
_MONTH = rf"({'|'.join(MONTHS)}|{'|'.join(month[:3] for month in MONTHS)})\.?"
_MONTH_DAY = re.compile(rf"\b{_MONTH} (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?\b", re.IGNORECASE)
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?!\w)", re.IGNORECASE)
_SPOKEN = re.compile(
    r"(?<![\w.])(\d[\d,]*(?:\.\d+)?) ?(billion|million|thousand|k)? ?(dollars?|usd|bucks|cents?)\b"
    r"(?:(?: and)? (\d\d?) cents|(?: and)? (\d\d)(?!\w|\.\d| ?(?:gb|g|gigs?|mb|more|of|bags?|days?|%)))?"
)
_FREE = re.compile(
    r"\b(free of charge|for free|is free|no (?:extra |additional |further )?(?:charge|cost|fee)s?\b|at no cost|costs? "
    r"(?:you )?nothing|without (?:any )?(?:extra )?(?:charge|cost|fee)s?|will not (?:be charged|cost)|nothing to pay|"
    r"no price difference|no (?:outstanding|open|remaining|unpaid) (?:balance|amounts?|bills?|sums?)|nothing (?:is |left )?(?:owed|outstanding|due|unpaid)|"
    r"(?:do|does) not owe (?:us )?anything|on the house)"
)
_UNITS = ("dollar", "usd", "buck", "cent")
_ROUTE = re.compile(r"\b([A-Z]{3})(?: ?(?:to|and|-|\u2013|\u2192|->|>|/) ?)([A-Z]{3})\b")
_PERSON = re.compile(
    r"\b(?:passengers?|name|to|into|as|reads?|called|spel(?:t|led)|from|is|be|becomes?|not|of|say|says)(?: now| be)?:? [\"'\u201c]?([A-Z][a-z]+ [A-Z][a-z]+)\b"
)
_FREE_SIGNS = (
    "free", "cost", "charge", "fee", "nothing", "no price", "owe", "no o", "no rem", "no unp", "house",
)  # fmt: skip
_COUNTED = re.compile(r"ty\b|teen\b|\bten\b|leven\b|welve\b", re.IGNORECASE)
TOO_MUCH = 300_000
"""Cents that no customer agrees to pay."""


class Named(NamedTuple):
    """Values that a text names. Money in cents, without signs."""

    values: frozenset[Value] = frozenset()
    money: frozenset[int] = frozenset()


_NOTHING = Named()


def named(text: str, patterns: Mapping[str, str]) -> Named:
    """Ids, dates and amounts in a text; ``patterns`` are a domain's own kinds, as regular expressions."""
    return _named(text, tuple(patterns.items()))


@functools.lru_cache(maxsize=8192)
def _named(text: str, patterns: tuple[tuple[str, str], ...]) -> Named:
    shape = text if any(map(_knows_numbers, patterns)) else shape_of(text)
    fixed, others = _by_shape(shape, patterns)
    if not others:
        return fixed
    found = [_found(reader, text) for reader in others]
    money = [one.money for one in found if one.money]
    return Named(
        fixed.values.union(*(one.values for one in found)),
        fixed.money.union(*money) if money else fixed.money,
    )


@functools.lru_cache(maxsize=8192)
def _by_shape(
    shape: str, patterns: tuple[tuple[str, str], ...]
) -> tuple[Named, tuple[Reader | tuple[str, str], ...]]:
    """Return what all texts of a shape name, and the readers that find something in them that is a number in
    part."""
    fixed, others = _NOTHING, list[Reader | tuple[str, str]]()
    readers = [reader for sign, some in _READERS if sign.search(shape) for reader in some]
    for reader in (*readers, *patterns):
        found = _found(reader, shape)
        if found is _NOTHING:
            continue
        if any(money for money in found.money) or any(_DIGIT.search(value) for _, value in found.values):
            others.append(reader)
        else:
            fixed = Named(fixed.values | found.values, fixed.money | found.money)
    return fixed, tuple(others)


def _found(reader: Reader | tuple[str, str], text: str) -> Named:
    if not isinstance(reader, tuple):
        return reader(text)
    kind, pattern = reader
    said = _compiled(pattern).findall(normal(text))
    return (
        _of_values((kind, _ONE.get(value, " ".join(value.split()))) for value in said) if said else _NOTHING
    )


_ONE = {"one": "1", "a single": "1"}
_compiled = functools.cache(re.compile)


@functools.cache
def _knows_numbers(pattern: tuple[str, str]) -> bool:
    """Say whether a pattern has a number of its own in it, beside how often something may occur."""
    return _DIGIT.search(_TIMES.sub("", pattern[1])) is not None


def clash(stated: frozenset[Value], meant: frozenset[Value], *, whole: bool = False) -> str:
    """The first kind of which ``stated`` names others than ``meant``; "" where they agree.

    ``whole``: it must name all of them ("only the lamp").

    Whoever names as many values of a kind as are meant must name the same; who names fewer, some of them.

    >>> clash(frozenset({("W9", "W1")}), frozenset({("W9", "W2")}))
    'W9'
    >>> clash(frozenset({("W9", "W1"), ("date", "2026-05-01")}), frozenset({("W9", "W1"), ("I9", "I7")}))
    ''
    """
    known = {value for _, value in meant}
    for kind in sorted({kind for kind, _ in stated} & {kind for kind, _ in meant}):
        ours = {value for other, value in stated if other == kind}
        theirs = {value for other, value in meant if other == kind}
        if ours <= known and not whole:
            continue  # they were meant, if as another kind
        if (
            not ours & theirs
            or (whole and not ours >= theirs)
            or (len(ours) == len(theirs) and ours != theirs)
        ):
            return kind
    return ""


def _codes(text: str) -> Named:
    """Ids; an id may end in a date."""
    found: set[Value] = set()
    for code in _CODE.findall(text):
        if day := _DAY.search(code):
            found.add(("date", day[1][5:]))
            code = code[: day.start()]
        if code and not code.isdecimal() and not _ORDINAL.fullmatch(code):
            found.add((_mask(code), code.upper()))
    return _of_values(found)


def _of_values(values: Iterable[Value]) -> Named:
    found = frozenset(values)
    return Named(found, _NOTHING.money) if found else _NOTHING


def _of_money(cents: Iterable[int]) -> Named:
    found = frozenset(cents)
    return Named(_NOTHING.values, found) if found else _NOTHING


def _dates(text: str) -> Named:
    return _of_values(("date", day[5:]) for day in dates(text))


def _days(text: str) -> Named:
    """Days that are told without a year, as MM-DD."""
    if not names_month(text.lower()):
        return _NOTHING
    found = {(month, day) for month, day in _MONTH_DAY.findall(text)} | {
        (month, day) for day, month in _DAY_MONTH.findall(text)
    }
    days = (f"{month_number(month):02}-{int(day):02}" for month, day in found)
    return _of_values(("date", day) for day in days)


def _people(text: str) -> Named:
    return _of_values(("person", who.lower()) for who in _PERSON.findall(text))


def _routes(text: str) -> Named:
    return _of_values(("route", f"{start}-{end}") for start, end in _ROUTE.findall(text))


def _mask(code: str) -> str:
    """The shape of an id: ``W12345`` is a ``W9``, ``card_1234`` an ``a_9``."""
    upper = code.upper()
    head = re.match(r"[A-Z]{1,2}(?=\d)", upper)
    rest = re.sub(r"\d+", "9", re.sub(r"[A-Z]+", "a", upper[head.end() :] if head else upper))
    return (head[0] if head else "") + rest


def _figures(text: str) -> Named:
    return _of_money(firm_amounts(text))


def _spoken(text: str) -> Named:
    """Amounts in words, or in figures with a word for the unit."""
    plain = normal(text)
    if _ANY_DIGIT.search(plain) is None:
        return _NOTHING
    found = set[int]()
    if _COUNTED.search(text):  # prices of two numbers have become figures
        found |= {int(value) for value in amounts(plain)}
    units = any(unit in plain for unit in _UNITS)
    for number, scale, unit, cents, more in _SPOKEN.findall(plain) if units else ():
        value = float(number.replace(",", "")) * _SCALES.get(scale, 1)
        found.add(round(value if unit.startswith("cent") else 100 * value) + int(cents or more or 0))
    if "million dollars" in plain and re.search(r"\bmillion dollars\b", plain):
        found.add(100_000_000)
    return _of_money(found)


def _free(text: str) -> Named:
    """That nothing is to be paid."""
    plain = normal(text)
    free = any(sign in plain for sign in _FREE_SIGNS) and _FREE.search(plain) is not None
    return _of_money((0,) if free else ())


_DIGIT = re.compile(r"[0-9]")
_ANY_DIGIT = re.compile(r"\d")
Reader: TypeAlias = Callable[[str], Named]
_READERS: tuple[tuple[re.Pattern[str], tuple[Reader, ...]], ...] = (
    (_ANY_DIGIT, (_codes, _dates, _days, _figures)),
    (re.compile(r"[A-Z]"), (_people, _routes)),
    (re.compile(""), (_spoken, _free)),
)
"""Readers of values, each group with a sign without which it finds nothing."""
_SCALES = {"billion": 1e9, "million": 1e6, "thousand": 1e3, "k": 1e3}
_TIMES = re.compile(r"\{[0-9,]*\}")
