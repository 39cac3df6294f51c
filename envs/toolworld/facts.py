"""Typed values in free text: a fact is communicated when its value is stated, not when its letters occur.

``10`` is not found in ``100``, ``$5`` not in ``$5.50``; a message that states many values states none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from turnwise.envs.worlds.vocabulary import MONTHS, NUMBERS

FactKind: TypeAlias = Literal["money", "count", "date", "time", "code", "word"]
MOST = 3
"""So many different values of a kind may stand in a message that communicates one of them."""

_MONEY = re.compile(r"\$\s?(\d[\d,]*(?:\.\d+)?)|(?<![\w.$-])(\d[\d,]*\.\d\d)(?![\w]|[.,]\d)")
_CENTS = re.compile(r"\.\d\d")
_COUNT = re.compile(r"(?<![\w.,$:/-])\d+(?![\w%:/-]|[.,]\d)")
_DATE = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_MONTHS = [month.lower() for month in MONTHS]
_SPOKEN = re.compile(rf"\b({'|'.join(_MONTHS)}) (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b", re.IGNORECASE)
_TIME = re.compile(r"(?<![\d:])(\d{1,2}):(\d\d)(?::\d\d)?\s*([ap]\.?m\b)?", re.IGNORECASE)
_CODE = re.compile(r"(?<![\w-])#?((?=[\w-]*\d)[A-Za-z][\w-]*)(?![\w-])")
_WORDS = {word: str(number) for number, word in enumerate(NUMBERS) if word != "one"}
# "One" is mostly a pronoun: "the red one".
_ONE = r"(?:(?<=is )|(?<=are )|(?<=only )|(?<=just )|(?<=exactly ))one"
_NUMBER_WORD = re.compile(rf"(?<!\w)({_ONE}|{'|'.join(_WORDS)})\b", re.IGNORECASE)


class Fact(NamedTuple):
    """Something that the agent must tell: cents for money, otherwise the value's plain form.

    A ``word`` is one of ``choices``, matched as a whole phrase.
    """

    kind: FactKind
    value: str
    choices: tuple[str, ...] = ()


def stated(fact: Fact, text: str) -> bool | None:
    """Whether ``text`` states the fact; None where it states no value of this kind.

    >>> ten = Fact("money", "1000")
    >>> [stated(ten, text) for text in ("It is $10.", "$10.00", "It is $100.", "Ten it is.")]
    [True, True, False, None]
    """
    values = set(_EXTRACT[fact.kind](text)) if fact.kind != "word" else _choices(fact.choices, text)
    if not values:
        return None
    return fact.value in values and len(values) <= (1 if fact.kind == "word" else MOST)


def dollars(cents: int) -> str:
    """
    >>> dollars(123450), dollars(-5)
    ('$1,234.50', '-$0.05')
    """
    sign = "-" if cents < 0 else ""
    return f"{sign}${abs(cents) // 100:,}.{abs(cents) % 100:02}"


def say(fact: Fact) -> str:
    """The fact's value as one would write it."""
    return dollars(int(fact.value)) if fact.kind == "money" else fact.value


def amounts(text: str) -> list[str]:
    """Amounts of money, in cents."""
    found: list[str] = []
    if "$" not in text and _CENTS.search(text) is None:  # a look at the signs is cheaper than a search
        return found
    for match in _MONEY.finditer(text):
        whole, _, part = (match[1] or match[2]).replace(",", "").partition(".")
        if len(part) <= 2:
            found.append(str(int(whole) * 100 + int((part or "0").ljust(2, "0"))))
    return found


def _counts(text: str) -> list[str]:
    digits = [str(int(number)) for number in _COUNT.findall(text) if len(number) < 20]
    return digits + [_WORDS.get(word.lower(), "1") for word in _NUMBER_WORD.findall(text)]


def dates(text: str) -> list[str]:
    """Days, as YYYY-MM-DD."""
    lower = text.lower()
    if text.isascii() and not any(month in lower for month in _MONTHS):
        return ["-".join(match) for match in _DATE.findall(text)]
    spoken = (
        f"{year}-{_MONTHS.index(month.lower()) + 1:02}-{int(day):02}"
        for month, day, year in _SPOKEN.findall(text)
    )
    return ["-".join(match) for match in _DATE.findall(text)] + list(spoken)


def _times(text: str) -> list[str]:
    found: list[str] = []
    for hour, minute, half in _TIME.findall(text):
        value = int(hour)
        if half:
            value = value % 12 + (12 if half.lower().startswith("p") else 0)
        found.append(f"{value:02}:{minute}")
    return found


def _codes(text: str) -> list[str]:
    return [code.upper() for code in _CODE.findall(text)]


def _choices(choices: tuple[str, ...], text: str) -> set[str]:
    """Those that are mentioned, longest first, so that "red" is not found in "dark red"."""
    found: set[str] = set()
    rest = text.lower()
    for choice in sorted(choices, key=len, reverse=True):
        pattern = rf"(?<!\w){re.escape(choice.lower())}(?!\w)"
        if re.search(pattern, rest):
            found.add(choice)
            rest = re.sub(pattern, " ", rest)
    return found


_EXTRACT: Mapping[FactKind, Callable[[str], list[str]]] = {
    "money": amounts,
    "count": _counts,
    "date": dates,
    "time": _times,
    "code": _codes,
}
