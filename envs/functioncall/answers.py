"""Judgement of whether a message tells the answer: one value that it stands by, not a list of them, nor one
that it denies or doubts.

Each value that a message names becomes one sign in a skeleton of the text. What is denied, corrected, compared with,
asked about or only worked with is taken out of it; what is left must be one value.
"""

from __future__ import annotations

import enum
import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from turnwise.envs.functioncall.hearing import WordsMeaning, meaning
from turnwise.envs.worlds.vocabulary import MONTHS, UNITS, number_of
from turnwise.tasks.core import Json

AnswerKey: TypeAlias = float | str

_LONGEST = 4_000  # characters of a message; a longer one is to be said shortly
_MOST = 40  # values in one message; more are a list whatever stands around them
_SHORT = 400  # characters of a message that is remembered, for a group's episodes say the same
_MONTH = rf"(?:{'|'.join(MONTHS)})"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_ISO = r"\d{4}-\d\d-\d\d"
_BEHIND = r"(?:(?=s\b|ing\b)|(?!\w| (?:answer|result|value)\b))"  # a value that is told
_KINDS = [(re.compile(kind), re.compile(rf"(?<!\w)(?=({kind}){_BEHIND})")) for kind in (_ISO, r"\d\d:\d\d")]
_BEFORE = re.compile(r"(?<!\w)")
_AFTER = re.compile(_BEHIND)
_IDS = re.compile(
    rf"\b[a-z]{{1,3}}-\d+\b|\b\d+-\d+-\d+\b|\d+:\d+|\b{_DAY} (?:of )?{_MONTH}\b(?:,? \d{{4}}\b)?"
    rf"|\b{_MONTH} {_DAY}\b(?:,? \d{{4}}\b)?",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"(?<![\w.,])(?P<hours>\d+) ?(?:hours?|hrs?|h)\b(?:,? (?:and )?(?P<minutes>\d+) ?(?:minutes?|mins?|m)\b)?",
    re.IGNORECASE,
)
_STAR = re.compile(r"^([ \t]*)\*(?=[ \t])", re.MULTILINE)  # before an item of a list
_ITEMS = re.compile(r"^[ \t]*\d+[.)](?=[ \t]+\S)", re.MULTILINE)
_DIGITS = r"(?<![\w.])\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?(?![\d,]*\d)|(?<![\w.])\d+(?:\.\d+)?(?!\d)"
_ANY_WORD = "|".join(sorted((*UNITS, "hundred", "thousand"), key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?P<digits>{_DIGITS})|\b(?:a )?(?:{_ANY_WORD})(?:(?:[- ]| and )(?:{_ANY_WORD})){{0,12}}\b",
    re.IGNORECASE,
)
_A_ONE = re.compile(
    r"\b(?:the|that|this|which|no|any|each|every|another|right|wrong|first|last|the only) one\b|\bone (?:of|by|moment|more|second)\b",
    re.IGNORECASE,
)
_ZERO = re.compile(
    r"\bnone\b|\bno (?!idea|problem|doubt|longer|sorry|such|matter|one|need|answer|i\b|it\b)\w", re.IGNORECASE
)

# --- what stands around values in a skeleton; a value is one sign between _FIRST and _LAST ------------

_FIRST = 0xE000
_V = "[\ue000-\uf8ff]"
_VALUE = re.compile(_V)
_GAP = "[^.;:!?\n\ue000-\uf8ff]"
_LIST = rf"(?:{_V}(?:(?:\s*(?:,|/|&)\s*|\s+)(?:and |or |nor )?)?)*{_V}"
_NOT = (
    r"(?:\bnot|\bcannot|n't|\bnever|\bneither|\bnor|\brather than|\binstead of|\bas opposed to|\banything but|\bother than|"
    r"\bexcept(?: for)?|\bapart from|\bexclud\w+|\brul(?:e[sd]?|ing) out|\breject\w*|\beliminat\w+|\bdismiss\w*|\bno longer)"
)
_VERB = r"(?:is|are|was|were|has|have|does|do|did|can|could|would|will)"
_DENIED = re.compile(
    rf"{_NOT}(?:\s+(?!is\b|are\b|was\b|were\b|but\b|sure\b)[\w'-]+){{0,5}}\s*[\"'(]*{_LIST}"
    rf"|(?:(?:not|n't) (?:think|believe|say|suppose|claim|sure|certain|know|mean|convinced)|(?<!no )(?<!any )(?<!without )(?<!without a )\bdoubt(?:s|ed|ful)?|"
    rf"\bunlikely|\bwrong (?:that|to))\b(?:(?!but\b)[^.;:!?,\n\ue000-\uf8ff]){{0,40}}{_LIST}",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    rf"{_LIST}[\"')]*,?\s*(?:(?:which|that|this|it|they|but|and)\s+){{0,2}}{_VERB}(?:n't|(?:\s+\w+)?\s+(?:not|wrong|incorrect|false|"
    rf"mistaken|out|excluded|impossible|ruled|no longer))\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:that|this|it|which|i) (?:was|is|were) (?:\w+ )?(?:wrong|mistaken|incorrect|a mistake|an error|a slip)\b|\bscratch that\b|"
    r"\bforget that\b",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"\bno\b\s*[,.!:;–—-]|\bsorry\b|\bcorrection\b|\bi mean(?:t)?\b|\bactually\b|\bmake (?:that|it)\b|\bor rather\b|\brather,|"
    r"\bwait\b|\boops\b|\bmisspoke\b|\bon second thoughts?\b|\bmy mistake\b|\bin fact\b|\bbut now\b",
    re.IGNORECASE,
)
_BELIEVED = re.compile(
    rf"\b(?:thought|assumed|guessed|said|believed|suspected|expected|seemed|looked like)\b{_GAP}{{0,40}}{_LIST}"
    rf"|\bwas {_V}(?= (?:before|earlier|previously|at first|until)\b)",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    rf"\b(?:than|compared (?:to|with)|versus|vs\.?|unlike|followed by|ahead of|beat(?:s|ing)?|next (?:is|are|come|comes))\s+"
    rf"(?:the |both )?[\"'(]*{_LIST}"
    rf"|(?:\A[\"'( ]*|[.,;:!?\n] *|(?<={_V} )|\w+est |\b(?:out|made up|most|least|first|last|one|which|each|any|some) )"
    rf"of (?:the |all |all the |these |your |them,? )?{_LIST}(?! (?:of|in total|altogether)\b)"
    rf"|(?:(?<={_V})(?: in total| altogether)?,? (?:for|from|over)|\b(?:across|among)|\b(?:for|from|over)(?= (?:the|all|these|those)\b))"
    rf" (?:the |all |all the |these |those |your )?{_LIST}(?= \w)"
    rf"|\b(?:the|all|these|those|both)(?: the| these| those)? {_LIST} (?:\w+ ){{1,4}}"
    rf"(?=(?:have|had|cost|add|come|make|total|amount|weigh|last)s?\b)"
    rf"|\b(?:whereas|while|(?:next|second|runner-up)(?: one)?(?: is| comes)?) (?:the )?[\"'(]*{_LIST}"
    rf"|\b(?:compar\w+|check\w*|look\w* (?:at|into|through)|consider\w*|review\w*|examin\w+|went through|candidates?|options?)\b"
    rf"{_GAP}{{0,30}}:?\s*{_LIST}",
    re.IGNORECASE,
)
_OPERAND = re.compile(
    rf"{_V}(?=[^\S\n]*\w{{0,12}}[^\S\n]*(?:\+|×|plus\b))|(?<=[+×])\s*[$€£]?{_V}|\bplus\s+[$€£]?{_V}"
)
_ASKED = re.compile(rf"[^.;!?\n]*{_V}[^.;!\n]*\?")
_BESIDE = re.compile(r"(?<!\bor )\((?![^()]{0,300}\b(?:or|maybe|perhaps|possibly|either)\b)[^()]{0,300}\)")
_LISTED = re.compile(rf"^[ \t]*(?:[-–•]|(?:\d+|{_V})[.)])[ \t].*{_V}.*$", re.MULTILINE)
_PART_OF = re.compile(rf"{_V} of (?:them|these|those|which)\b", re.IGNORECASE)
_HEDGED = re.compile(
    r"\b(?:could|might|may) (?:also |well |still |just )?be\b|\bmight\b|\bmaybe\b|\bperhaps\b|\bpossibly\b|\bwhether\b|"
    r"\bone of (?:these|them|those|the following)\b(?=\s*:)|\beither\b|\bdepends\b|\bif not\b|\bis it\b|"
    rf"\b(?:more|less|fewer) than {_V}|\bat (?:least|most) {_V}|{_V} or (?:more|less|fewer|so)\b",
    re.IGNORECASE,
)
_IGNORANT = re.compile(
    r"\b(?:can'?t|cannot|can not|couldn't|could not) (?:really |possibly |quite )?(?:say|tell|know|answer|determine|be (?:sure|certain))\b|"
    r"(?:\bnot|n't) (?:\w+ )?(?:sure|certain|know)\b|\bunsure\b|\buncertain\b|\bno idea\b|\bhard to (?:say|tell)\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:answer|result|total(?:s|ling)?|in all|altogether|together|sum|comes? to|came to|adds? up|amounts?|makes|mak(?:es|ing) it|gives|so|"
    r"therefore|thus|hence|final(?:ly)?|conclu\w+|overall|is the one|what you (?:want|are looking for|asked))\b|=",
    re.IGNORECASE,
)  # fmt: skip
_RIVALLED = re.compile(
    rf"\b(?:or|alternatively|otherwise|else|unless|maybe|perhaps|possibly|might)\b{_GAP}{{0,40}}{_LIST}",
    re.IGNORECASE,
)
_LEADS = re.compile(
    rf"(?:\b(?:(?:comes?|came|adds? up|amounts?) to|makes|gives|(?:total|sum|answer|result|number)"
    rf"(?:s|(?:[^.;!?\n]{{0,40}}? )?(?:is|of|would be)(?: exactly)?|:)?)|=)"
    rf"[^\w\ue000-\uf8ff]{{1,3}}(?={_V})",
    re.IGNORECASE,
)
_SIMPLY = re.compile(rf"(?:(?:it is|the answer is) )?{_V}\.?", re.IGNORECASE)
_PART = re.compile(
    r"[.;!?\n]+(?=\s|$)|:|[–—]|\s-\s|,(?= (?:so|therefore|thus|hence|which (?:makes|gives|adds|comes)|together|in (?:total|all))\b)"
)


class ToldAnswer(enum.Enum):
    """Verdicts on whether an answer was told."""

    RIGHT = enum.auto()
    WRONG = enum.auto()
    UNCLEAR = enum.auto()  # several values, or one with a doubt
    OPEN = enum.auto()  # values are named, and none of them is said to be it
    NOTHING = enum.auto()


class _NamedValue(NamedTuple):
    """A value that a text names, and where."""

    start: int
    end: int
    key: AnswerKey


class RightAnswer(NamedTuple):
    """The value that must be told, and what could be told in its place."""

    value: AnswerKey
    others: tuple[str, ...] = ()


def told(text: str, answer: Mapping[str, Json], request: str = "") -> ToldAnswer:
    """Judge whether a message tells an answer, and nothing else that it could be. What the request says is no
    answer to it.

    >>> [told(text, {"value": 5, "others": []}).name for text in (
    ...     "It is 5.", "2 + 3 = 5", "5 or 6", "Not 5.", "5, sorry, I mean 6.", "Perhaps 5.", "Soon.")]
    ['RIGHT', 'RIGHT', 'UNCLEAR', 'OPEN', 'WRONG', 'UNCLEAR', 'NOTHING']
    """
    value = answer["value"]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        right = RightAnswer(str(value), tuple(map(str, answer["others"])))
    else:
        right = RightAnswer(float(value))
    return (_remembered if len(text) < _SHORT else _judged)(text, right, request)


def _judged(text: str, right: RightAnswer, request: str) -> ToldAnswer:
    plain = _tidied(text)
    value, named = _named(plain, right, request)
    if not named:
        return ToldAnswer.NOTHING
    if len(named) > _MOST or len(plain) > _LONGEST:
        return ToldAnswer.UNCLEAR
    skeleton = plain
    for number, one in reversed([*enumerate(named)]):
        skeleton = f"{skeleton[: one.start]}{chr(_FIRST + number)}{skeleton[one.end :]}"
    if _SIMPLY.fullmatch(skeleton):  # as most answers are, and nothing below would change it
        return _verdict_of(named[0].key, value)
    left = _without_context(_without_denied(skeleton))
    said = _said(left, named)
    if not said:
        return ToldAnswer.OPEN
    if len(said) > 1 or _doubted(left):
        return ToldAnswer.UNCLEAR
    return _verdict_of(next(iter(said)), value)


def _verdict_of(said: AnswerKey, right: AnswerKey) -> ToldAnswer:
    return ToldAnswer.RIGHT if _equal(said, right) else ToldAnswer.WRONG


_remembered = functools.lru_cache(maxsize=4096)(_judged)


def numbers_in(text: str) -> set[float]:
    """The numbers that a text tells, in digits or words, without ids, dates and times.

    >>> sorted(numbers_in("Of f-12 and 1,250.5 there are twenty-three, not 196 608, on 2031-01-02 at 10:30."))
    [23.0, 1250.5, 196608.0]
    """
    return set(_numbers_of(text))


@functools.lru_cache(maxsize=2048)
def _numbers_of(text: str) -> frozenset[float]:
    return frozenset(one.key for one in _numbers(_tidied(text)) if isinstance(one.key, float))


# --- the values that a text names --------------------------------------------------------------------


def _tidied(text: str) -> str:
    """A text without emphasis, in plain quotes and spaces, and without signs that a skeleton uses."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
        text = text.replace("“", '"').replace("”", '"').replace("−", "-")
        text = _VALUE.sub("", text)
    return _STAR.sub(r"\1-", text).replace("*", "").replace("`", "")


def _named(text: str, right: RightAnswer, request: str) -> tuple[AnswerKey, list[_NamedValue]]:
    """The right value, and the values that a text names, in order."""
    value, others = right
    if not isinstance(value, str):
        mine = _numbers_of(request) if request else frozenset[float]()
        found = [
            one
            for one in _numbers(text)
            if one.key not in mine or (_equal(one.key, value) and not _repeats(text, one, _tidied(request)))
        ]
        return value, found
    lower = text.casefold()
    if len(lower) != len(text):  # a letter that folds to two: where values stand is kept by leaving it
        lower = text.lower() if len(text.lower()) == len(text) else text
    mine, said = value.casefold(), request.casefold()
    return mine, [
        one for one in _sayable(lower, value, others) if one.key == mine or str(one.key) not in said
    ]


def _numbers(text: str) -> list[_NamedValue]:
    """The numbers of a text; 1 for "one" and 0 for "none" only where there are no others."""
    masked = _IDS.sub(lambda found: " " * len(found[0]), text)
    if len(items := _ITEMS.findall(masked)) > 1 and items[0].strip()[:-1] == "1":
        masked = _ITEMS.sub(lambda found: " " * len(found[0]), masked)
    found = [_NamedValue(one.start(), one.end(), _minutes(one)) for one in _DURATION.finditer(masked)]
    masked = _DURATION.sub(lambda found: " " * len(found[0]), masked)
    ones: list[_NamedValue] = []
    for one in _NUMBER.finditer(masked):
        value = (
            float(re.sub("[,' ]", "", one[0]))
            if one["digits"]
            else float(number_of(re.findall("[a-z]+", one[0].lower())))
        )
        lone = one[0].lower() == "one"
        (ones if lone else found).append(_NamedValue(one.start(), one.end(), value))
    if found:
        return sorted(found)
    if ones and not _A_ONE.search(masked):
        return ones
    none = _ZERO.search(masked)
    if none and meaning(text) is not WordsMeaning.DECLINES:
        return [_NamedValue(none.start(), none.end(), 0.0)]
    return []


def _minutes(duration: re.Match[str]) -> float:
    return 60.0 * int(duration["hours"]) + int(duration["minutes"] or 0)


def _repeats(text: str, one: _NamedValue, request: str) -> bool:
    """Say whether a number stands behind the same word as in the request: "session 4"."""
    before = re.search(r"(\w+) $", text[: one.start])
    said = text[one.start : one.end]
    return (
        before is not None
        and re.search(rf"\b{before[1]} {re.escape(said)}\b", request, re.IGNORECASE) is not None
    )


def _equal(one: AnswerKey, other: AnswerKey) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 0.005
    return one == other


def _sayable(text: str, value: str, others: tuple[str, ...]) -> list[_NamedValue]:
    """List the places where a text says one of these values in any way, or another one of the kind of the
    first; of those that begin at one place it is the longest."""
    # A pattern of all ways would have to be compiled anew for nearly every question, which takes milliseconds.
    found: list[tuple[int, int, str, _NamedValue]] = []
    for way, key in _keys_of_ways(value, others).items():
        begin = text.find(way)
        while begin >= 0:
            end = begin + len(way)
            if _BEFORE.match(text, begin) and _AFTER.match(text, end):
                found.append((begin, -len(way), way, _NamedValue(begin, end, key)))
            begin = text.find(way, begin + 1)
    same_kind = next((found for kind, found in _KINDS if kind.fullmatch(value)), None)
    for one in same_kind.finditer(text) if same_kind else ():
        found.append((one.start(), 0, "", _NamedValue(one.start(), one.end(1), one[1])))
    chosen: list[_NamedValue] = []
    for *_, one in sorted(found):
        if not chosen or one.start >= chosen[-1].end:
            chosen.append(one)
    return chosen


@functools.lru_cache(maxsize=2048)
def _keys_of_ways(value: str, others: tuple[str, ...]) -> Mapping[str, str]:
    """Map each way to say a value to the value that it says."""
    keys: dict[str, str] = {}
    for one in (*others, value):
        keys |= dict.fromkeys(_ways(one), one.casefold())
    return keys


def _ways(value: str) -> list[str]:
    """List the ways in which a value may be said."""
    ways = [value.casefold()]
    if re.fullmatch(_ISO, value):
        year, month, day = value.split("-")
        ways += [f"{year}/{month}/{day}", f"{day}.{month}.{year}", f"{int(day)}.{int(month)}.{year}"]
        full = MONTHS[int(month) - 1].lower()
        for name in (full, full[:3], f"{full[:3]}."):
            for d in (str(int(day)), day, _nth(int(day))):
                ways += [f"{d} {name} {year}", f"{d} {name}, {year}", f"{d} of {name} {year}"]
                ways += [f"{name} {d} {year}", f"{name} {d}, {year}"]
    if re.fullmatch(r"\d\d:\d\d", value):
        hour, minute = map(int, value.split(":"))
        half = "am" if hour < 12 else "pm"
        hour = (hour - 1) % 12 + 1
        for short in (f"{hour}:{minute:02}", f"{hour:02}:{minute:02}", *([] if minute else [str(hour)])):
            ways += [f"{short}{gap}{one}" for gap in (" ", "") for one in (half, f"{half[0]}.{half[1]}.")]
    if value.startswith("/"):
        ways += [f"folder {value[1:]}", f"{value[1:].casefold()} folder"]
    return ways


def _nth(day: int) -> str:
    return f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


# --- what is said of them ----------------------------------------------------------------------------


def _without_denied(text: str) -> str:
    """A skeleton without values that are asked about, denied or taken back."""
    text = _blank(_ASKED, text)
    text = _blank(_DENIED_AFTER, _blank(_DENIED, text))
    for one in reversed([*_TAKEN_BACK.finditer(text)]):
        return _blank_before(text, one.end())
    for one in reversed([*_CORRECTED.finditer(text)]):
        if _values(text[one.end() :]):
            return _blank_before(text, one.end())
    return text


def _without_context(text: str) -> str:
    """A skeleton without values that are worked with or compared, where that leaves any."""
    text = _blank(_OPERAND, "".join(map(_after_sign, re.split(r"([.;!?\n])", text))))
    for pattern in (_BELIEVED, _BESIDE, _LISTED, _COMPARED, _PART_OF):
        if len(_values(text)) > 1 and _values(shorter := _blank(pattern, text)):
            text = shorter
    return text


def _after_sign(sentence: str) -> str:
    """A sentence in a skeleton without values before its last "=" that stands before one."""
    places = [one.end() for one in re.finditer("=", sentence)]
    last = max((place for place in places if _values(sentence[place:])), default=0)
    return _blank_before(sentence, last)


def _said(text: str, named: Sequence[_NamedValue]) -> set[AnswerKey]:
    """The values that a skeleton stands by: those of its conclusion, where it draws one."""
    everything = _keys(text, named)
    if len(everything) < 2:
        return everything
    concluding = [part for part in _parts(text) if _CONCLUDES.search(part)]
    concluding = [
        part[one.end() :] for part in concluding for one in [*_LEADS.finditer(part)][-1:]
    ] or concluding
    concluded = {key for part in concluding for key in _keys(part, named)}
    rivals = {key for one in _RIVALLED.findall(text) for key in _keys(one, named)}
    return concluded | rivals if concluded else everything


def _parts(text: str) -> list[str]:
    """The parts of a text between its stops; one that only introduces the next belongs to it."""
    parts: list[str] = []
    start = 0
    for one in _PART.finditer(text):
        if _values(text[start : one.start()]) or one[0][0] not in ":–—":
            parts.append(text[start : one.start()])
            start = one.end()
    return [*parts, text[start:]]


def _doubted(text: str) -> bool:
    """Say whether the sentence with the value has a doubt, or what stands before it says that it is not
    known."""
    for sentence in re.split(r"[.;!?\n]+(?=\s|$)", text):
        if _values(sentence) and (_HEDGED.search(sentence) or _IGNORANT.search(sentence)):
            return True
    ignorant = _IGNORANT.search(text)
    return ignorant is not None and not _CONCLUDES.search(text, ignorant.end())


def _values(text: str) -> list[str]:
    return _VALUE.findall(text)


def _keys(text: str, named: Sequence[_NamedValue]) -> set[AnswerKey]:
    return {named[ord(sign) - _FIRST].key for sign in _values(text)}


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """A skeleton without the values in whatever a pattern finds; the words stay."""
    return pattern.sub(lambda found: _VALUE.sub("…", found[0]), text)


def _blank_before(text: str, place: int) -> str:
    return _VALUE.sub("…", text[:place]) + text[place:]
