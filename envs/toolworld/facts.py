"""Typed values in free text: a fact is communicated when its value is stated, not when its letters occur.

``10`` is not found in ``100``, ``$5`` not in ``$5.50``. What is asked, denied or one of several that are left open ("$5 or $6")
is not stated, nor what is only guessed, nor one of two answers to the same question ("It is 4. It is 5."); of many values in a
message only a total is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from turnwise.envs.toolworld.speech.words import plain_words
from turnwise.envs.worlds.vocabulary import MONTHS, NUMBERS, month_number, names_month

FactKind: TypeAlias = Literal["money", "count", "date", "time", "code", "word"]
MOST = 3
"""So many different values of a kind may stand in a message that communicates one of them."""

_MONEY = re.compile(r"\$\s?(\d[\d,]*(?:\.\d+)?)|(?<![\w.$-])(\d[\d,]*\.\d\d)(?![\w]|[.,]\d)")
_CENTS = re.compile(r"\.\d\d")
_COUNT = re.compile(
    r"(?<![\w.,$:/-])(?:\d{1,3}(?:[,\u00a0\u202f]\d{3})+|\d+)(?!(?!(?:mb|gb)\b)\w|[%:/-]|[.,]\d)",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)(?!\d)")
_MONTH = rf"({'|'.join(MONTHS)}|{'|'.join(month[:3] for month in MONTHS)})\b\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_MONTH_DAY = re.compile(rf"\b{_MONTH} (?:the )?{_DAY}\b(?:,? (\d{{4}})\b)?", re.IGNORECASE)
_DAY_MONTH = re.compile(rf"\b{_DAY} (?:of )?{_MONTH}(?:,? (\d{{4}})\b)?", re.IGNORECASE)
_TIME = re.compile(r"(?<![\d:])(\d{1,2}):(\d\d)(?::\d\d)?\s*([ap]\.?m\b)?", re.IGNORECASE)
_CODE = re.compile(r"(?<![\w-])#?((?=[\w-]*\d)[A-Za-z][\w-]*)(?![\w-])")
_WORDS = {word: str(number) for number, word in enumerate(NUMBERS) if word != "one"}
# "One" is mostly a pronoun: "the red one".
_ONE = r"(?:(?<=is )|(?<=are )|(?<=only )|(?<=just )|(?<=exactly )|^)one(?! (?:moment|second|sec|minute|min|tick|more|last|thing|question|step|of|by|at)\b)"
_NUMBER_WORD = re.compile(rf"(?<!\w)({_ONE}|{'|'.join(_WORDS)})\b", re.IGNORECASE)


_SAME: Mapping[str, tuple[str, ...]] = {
    "scheduled": ("on time", "on schedule", "as planned", "as scheduled", "to schedule"),
    "cancelled": ("canceled", "called off"),
    "delayed": ("late", "behind schedule"),
}
"""Other words for a word that is one of some choices."""
_ENDS = re.compile(r"(?<=[?!;])\s+|(?<=[^\d\s]\.)\s+|(?<=\d\.)\s+(?=[A-Z])|\n+")
_ASKS = re.compile(
    r"\b(?:is|are|was|were|does|did) (?:it|your|the|there)\b(?!.*\b(?:okay|ok|fine|all ?right|acceptable|agree\w*|good)\b)[^,]*\?$",
    re.IGNORECASE,
)
"""A question whether something is so, which states nothing."""
_DENIES = re.compile(r"(?:\bnot|n't|\bnever|\bno longer|\bneither|\bnor)(?: \w+)?[ \"'*]*$", re.IGNORECASE)
_LEFT_OPEN = re.compile(r"[\s,;/*]*(?:(?:\w+ ){0,2}or(?: \w+){0,2}|to|\u2013|-)?[\s~*]*", re.IGNORECASE)
"""Text between two values neither of which is stated: "5 or 6", "5, 6", "5 to 6"."""
_GUESSES = re.compile(
    r"^or\b|\b(?:maybe|perhaps|possibly|probably|presumably|(?:might|could|may) be|guess|or it is|or (?:maybe|perhaps)|un(?:sure|certain)|not (?:sure|certain))\b",
    re.IGNORECASE,
)
"""A sentence that leaves open what it says."""
_KNOWS_NOTHING = re.compile(
    r"\b(?:(?:do not|don't|cannot|can't|can not) (?:know|say|tell)(?: it| that| exactly| for sure)*|no idea|not sure|unsure)(?=[.,;:!]|$| but\b)",
    re.IGNORECASE,
)
"""That the speaker has no answer, whatever they say beside it."""
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_SUMS_UP = re.compile(
    r"\b(?:total|altogether|in all|sums?|so|left|remain\w*|comes? to|makes?|leaves?|adds? up to|equals)\b|=",
    re.IGNORECASE,
)


class Fact(NamedTuple):
    """Something that the agent must tell: cents for money, otherwise the value's plain form.

    A ``word`` is one of ``choices``, matched as a whole phrase.
    """

    kind: FactKind
    value: str
    choices: tuple[str, ...] = ()


class FoundValue(NamedTuple):
    """A value of a kind in a text, and where."""

    value: str
    start: int
    end: int


def stated(fact: Fact, text: str, beside: Collection[str] = ()) -> bool | None:
    """Say whether ``text`` states the fact; None where it states no value of this kind.

    ``beside`` are other values that may stand in it: what a change has cost is no wrong answer to another question.

    >>> ten = Fact("money", "1000")
    >>> [stated(ten, text) for text in ("It is $10.", "$10.00", "It is $100.", "Ten it is.")]
    [True, True, False, None]
    >>> [stated(ten, text) for text in ("It is $10 or $12.", "Is it $10?", "It is not $10.", "It was $12 and is $10 now.")]
    [False, None, False, True]
    >>> [stated(ten, text) for text in ("It is $10. It is $12.", "Maybe $10.", "It was $12 in May. Now it is $10.")]
    [False, False, True]
    """
    said, sums = list[_AnswerIn](), set[str]()
    ignorant = _KNOWS_NOTHING.search(text) is not None
    for sentence in _ENDS.split(text):
        found = [one for one in _values(fact, sentence) if one.value not in beside or _same(fact, one.value)]
        if not found or _ASKS.search(sentence):
            continue
        left = [one for one in found if not _DENIES.search(sentence[: one.start])]
        if ignorant or _GUESSES.search(sentence):
            said.append(_AnswerIn(frozenset(one.value for one in left), frozenset(), False))
            continue
        firm = frozenset(_firm(left, sentence))
        said.append(_AnswerIn(firm, _role(sentence, found), True))
        if left and left[-1].value in firm and _sums_up(left, sentence):
            sums.add(left[-1].value)
    if not said:
        return None
    return (len(sums) == 1 and _same(fact, *sums)) or _is_told(fact, said)


def has_rivals(fact: Fact, text: str) -> bool:
    """Say whether a text names another value of the fact's kind too.

    >>> [has_rivals(Fact("count", "5"), text) for text in ("it is 5 .", "it is 6 lamp 5 .")]
    [False, True]
    """
    return any(not _same(fact, one.value) for one in _values(fact, text))


class _AnswerIn(NamedTuple):
    """The values of a sentence, what they are values of, and whether they are no guess."""

    values: frozenset[str]
    role: frozenset[str]
    sure: bool


def _role(sentence: str, found: Iterable[FoundValue]) -> frozenset[str]:
    """The words of a sentence that say what its values are values of; none in a bare answer."""
    rest = sentence.lower()
    for one in found:
        rest = f"{rest[: one.start]}{' ' * (one.end - one.start)}{rest[one.end :]}"
    return frozenset(_WORD.findall(rest)) - plain_words("of_answers")


def _is_told(fact: Fact, said: Iterable[_AnswerIn]) -> bool:
    """Say whether one sentence says the fact for sure, and no other one gives another answer to the same
    question."""
    right = [one for one in said if any(_same(fact, value) for value in one.values)]
    others = [one for one in said if one not in right and one.values]
    beside = {value for one in said if one.sure for value in one.values if not _same(fact, value)}
    roles = {one.role for one in right if one.sure}
    if not roles or len(beside) >= (1 if fact.kind == "word" else MOST):
        return False
    return not any(not one.role or one.role in roles for one in others)


def _same(fact: Fact, value: str) -> bool:
    """Say whether a value is the fact's; a day that is told without its year begins with a dash."""
    return value == fact.value or (value.startswith("-") and fact.value.endswith(value))


def _firm(found: Iterable[FoundValue], sentence: str) -> set[str]:
    """The values that are not left open beside another one."""
    one_by_one = sorted(found, key=lambda one: one.start)
    open_ones = set[str]()
    for before, after in itertools.pairwise(one_by_one):
        if before.value != after.value and _LEFT_OPEN.fullmatch(sentence[before.end : after.start]):
            open_ones |= {before.value, after.value}
    return {one.value for one in one_by_one} - open_ones


def _sums_up(found: list[FoundValue], sentence: str) -> bool:
    return _SUMS_UP.search(sentence[found[-2].end if len(found) > 1 else 0 :]) is not None


def firm_amounts(text: str) -> set[int]:
    """Amounts of money, in cents, that are not left open: "$5 or $6" says none."""
    return {
        int(value)
        for sentence in _ENDS.split(text)
        for value in _firm(_found(_MONEY, sentence, _cents), sentence)
    }


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
    if "$" not in text and _CENTS.search(text) is None:  # a look at the signs is cheaper than a search
        return []
    return [one.value for one in _found(_MONEY, text, _cents)]


def dates(text: str) -> list[str]:
    """Days with their years, as YYYY-MM-DD."""
    return [day.value for day in _days(text) if not day.value.startswith("-")]


def _found(pattern: re.Pattern[str], text: str, read: Callable[[re.Match[str]], str]) -> list[FoundValue]:
    """List what a pattern finds and ``read`` makes a value of, with its places."""
    return [
        FoundValue(value, match.start(), match.end())
        for match in pattern.finditer(text)
        if (value := read(match))
    ]


def _cents(match: re.Match[str]) -> str:
    whole, _, part = (match[1] or match[2]).replace(",", "").partition(".")
    return str(int(whole) * 100 + int((part or "0").ljust(2, "0"))) if len(part) <= 2 else ""


def _counts(text: str) -> list[FoundValue]:
    def number(match: re.Match[str]) -> str:
        digits = re.sub(r"\D", "", match[0])
        return str(int(digits)) if len(digits) < 20 else ""

    words = _found(_NUMBER_WORD, text, lambda match: _WORDS.get(match[1].lower(), "1"))
    return _found(_COUNT, text, number) + words


def _days(text: str) -> list[FoundValue]:
    def day(month: str, number: str, year: str | None) -> str:
        return f"{year or ''}-{month_number(month):02}-{int(number):02}"

    found = _found(_DATE, text, lambda match: "-".join(match.groups()))
    if text.isascii() and not names_month(text.lower()):
        return found
    found += _found(_DAY_MONTH, text, lambda match: day(match[2], match[1], match[3]))
    taken = {place for one in found for place in range(one.start, one.end)}
    later = _found(_MONTH_DAY, text, lambda match: day(match[1], match[2], match[3]))
    return found + [
        one for one in later if one.start not in taken or one.value not in {o.value for o in found}
    ]


def _times(text: str) -> list[FoundValue]:
    def clock(match: re.Match[str]) -> str:
        hour = int(match[1])
        if match[3]:
            hour = hour % 12 + (12 if match[3].lower().startswith("p") else 0)
        return f"{hour:02}:{match[2]}"

    return _found(_TIME, text, clock)


def _codes(text: str) -> list[FoundValue]:
    return _found(_CODE, text, lambda match: match[1].upper())


def _choices(choices: tuple[str, ...], text: str) -> list[FoundValue]:
    """Those that are mentioned, longest first, so that "red" is not found in "dark red"."""
    found, rest = list[FoundValue](), text.lower()
    said = [(way, choice) for choice in choices for way in (choice, *_SAME.get(choice, ()))]
    for way, choice in sorted(said, key=lambda one: len(one[0]), reverse=True):
        pattern = re.compile(rf"(?<!\w){re.escape(way.lower())}(?!\w)")
        found += _found(pattern, rest, lambda match, choice=choice: choice)
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    return found


_EXTRACT: Mapping[FactKind, Callable[[str], list[FoundValue]]] = {
    "money": lambda text: _found(_MONEY, text, _cents),
    "count": _counts,
    "date": _days,
    "time": _times,
    "code": _codes,
}


def _values(fact: Fact, text: str) -> list[FoundValue]:
    return _choices(fact.choices, text) if fact.kind == "word" else _EXTRACT[fact.kind](text)
