"""What the user makes of an agent's words: a question, a refusal, an announcement, or a report with or without an answer.

Courtesy and announcements cost nothing. Whoever says that it is done is taken at their word.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Mapping

from turnwise.envs.worlds.vocabulary import MONTHS, NUMBERS
from turnwise.tasks.core import Json

_DECLINES = re.compile(
    r"\b(can(?:no|['’]?)t|can not|unable|not able|no (?:\w+ )?(?:tool|function|way|means|option|ability|access|api)s?|"
    r"(?:do(?:es)?|did|have|has|is|are|was|could|will|would)(?:n['’]?t| not) (?:\w+ ){0,3}?(?:have|possible|available|"
    r"supported|offered|able|support|allow|offer|provide|include|let|do|exist|find)\w*|won['’]?t be able|impossible|"
    r"(?:lack|miss)(?:s|es|ing)? (?:a|the|any)|beyond (?:my|what)|outside (?:of )?(?:my|what)|none of (?:my|the)|"
    r"nothing (?:that|here|which|to)|without (?:a|the|any) (?:tool|function)|not (?:possible|available|supported|something)|"
    r"decline|must refuse|no such)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\?|\b(please (?:tell|give|provide|specify|say|share|clarify|name|let|state|send)|tell me|let me know (?:which|what|who|"
    r"when|where|how|the|to)|i need to know|need (?:the|a|some|to know|more)|could you|can you|would you|may i (?:ask|know)|"
    r"is missing|specify|clarify)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"\b(let me (?!know)|i['’]?ll|i will|i shall|i am (?:going|about) to|i['’]m (?:going|about) to|(?:one|a|just a) "
    r"(?:moment|second|minute|sec)|hold on|bear with|give me a|stand by|looking (?:into|up|at|for)|checking|working on|"
    r"on it|right away|first,? i)\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\W*(?:(?:hi|hello|hey|sure|certainly|of course|okay|ok|alright|all right|good (?:morning|afternoon|evening|day)|"
    r"thanks|thank you|understood|got it|gladly|no problem|absolutely|(?:i(?:['’]m| am) )?happy to help|i understand|"
    r"with pleasure|welcome|my pleasure|i see|i['’]m sorry to hear that|sorry to hear that|i can help(?: you)? with that|"
    r"very well|noted)\b[^a-z]*)+",
    re.IGNORECASE,
)
_IDS = re.compile(r"\b[a-z]-\d+\b|\b\d+-\d+-\d+\b|\d+:\d+", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\d)")
_WORD = re.compile(r"[a-z]+")
_FEW = 3  # numbers, or names, among which an answer may stand


class WordsMeaning(enum.Enum):
    """What a message is."""

    ASKS = enum.auto()
    DECLINES = enum.auto()
    ANNOUNCES = enum.auto()
    REPORTS = enum.auto()


class ToldAnswer(enum.Enum):
    """Whether an answer was told."""

    RIGHT = enum.auto()
    WRONG = enum.auto()
    UNCLEAR = enum.auto()  # among many others
    NOTHING = enum.auto()


@functools.lru_cache(maxsize=8192)
def meaning(text: str) -> WordsMeaning:
    """What a message is.

    >>> [meaning(text).name for text in ("I'm afraid I can't.", "Which day?", "One moment please.", "Done!", "Sure!")]
    ['DECLINES', 'ASKS', 'ANNOUNCES', 'REPORTS', 'ANNOUNCES']
    """
    if _DECLINES.search(text):
        return WordsMeaning.DECLINES
    if _ASKS.search(text):
        return WordsMeaning.ASKS
    if _ANNOUNCES.search(text) or _COURTESY.fullmatch(text):
        return WordsMeaning.ANNOUNCES
    return WordsMeaning.REPORTS


def asks_for(text: str, ask: Mapping[str, Json]) -> bool:
    """Whether a question names what is missing."""
    words = f" {_plain(text)} "
    return any(f" {_plain(word)} " in words for word in ask["words"])


def told(text: str, answer: Mapping[str, Json]) -> ToldAnswer:
    """Whether a message tells an answer, and not with it whatever else it could be."""
    value, others = answer["value"], answer["others"]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        found = numbers_in(text)
        if not found:
            return ToldAnswer.NOTHING
        if all(abs(number - value) > 0.005 for number in found):
            return ToldAnswer.WRONG
        return ToldAnswer.RIGHT if len(found) <= _FEW else ToldAnswer.UNCLEAR
    lower = text.casefold()
    named = sum(str(other).casefold() in lower for other in others if str(other) not in str(value))
    if not any(way in lower for way in _ways(str(value))):
        return ToldAnswer.WRONG if named else ToldAnswer.NOTHING
    return ToldAnswer.RIGHT if named < _FEW else ToldAnswer.UNCLEAR


def numbers_in(text: str) -> set[float]:
    """The numbers that a text tells, in digits or words, without ids, dates and times.

    >>> sorted(numbers_in("Of f-12 and 1,250.5 there are three, on 2031-01-02 at 10:30."))
    [3.0, 1250.5]
    """
    plain = _IDS.sub(" ", text)
    found = {float(number.replace(",", "")) for number in _NUMBER.findall(plain)}
    words = _WORD.findall(plain.lower())
    found |= {float(NUMBERS.index(word)) for word in words if word in NUMBERS and word != "one"}
    return found or ({1.0} if "one" in words else {0.0} if {"no", "none"} & {*words} else set())


def _ways(value: str) -> list[str]:
    """How a value may be said."""
    ways = [value.casefold()]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        year, month, day = value.split("-")
        name = MONTHS[int(month) - 1].lower()
        for d in (str(int(day)), day, _nth(int(day))):
            ways += [
                f"{d} {name} {year}",
                f"{name} {d}, {year}",
                f"{name} {d} {year}",
                f"{d} of {name} {year}",
            ]
            ways += [f"{d} {name}, {year}"]
    if re.fullmatch(r"\d\d:\d\d", value):
        hour, minute = value.split(":")
        half = "am" if int(hour) < 12 else "pm"
        short = f"{(int(hour) - 1) % 12 + 1}:{minute}"
        ways += [f"{short} {half}", f"{short}{half}", f"{short} {half[0]}.{half[1]}."]
    return ways


def _nth(day: int) -> str:
    return f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower().replace("_", " ")).split())
