"""Numbers and months in words, as all readers of answers and all writers of requests have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

NUMBERS: tuple[str, ...] = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
"""The words of 0 to 12."""
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
UNITS: Mapping[str, int] = {
    **{word: value for value, word in enumerate((*NUMBERS, *_TEENS))},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}
"""Word → its number, of those that are added up."""
SCALES: Mapping[str, int] = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
"""Word → what it multiplies by."""

MONTHS: tuple[str, ...] = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_SHORT_MONTHS = [month[:3].lower() for month in MONTHS]


def number_of(words: Iterable[str]) -> int:
    """Return the number that words say together; words that say none count nothing.

    >>> number_of("a hundred and twenty three".split()), number_of("two thousand five hundred".split())
    (123, 2500)
    """
    total = now = 0
    for word in words:
        scale = SCALES.get(word, 0)
        if scale:
            now = max(now, 1) * scale
            total, now = (total + now, 0) if scale > 100 else (total, now)
        else:
            now += UNITS.get(word, 0)
    return total + now


def month_number(name: str) -> int:
    """Return the number of a month that is named, in full or by its first three letters.

    >>> month_number("Sept"), month_number("may")
    (9, 5)
    """
    return _SHORT_MONTHS.index(name[:3].lower()) + 1


def names_month(lower: str) -> bool:
    """Return whether a month may be named in a text in lower case: a look that spares most texts a search."""
    return any(month in lower for month in _SHORT_MONTHS)
