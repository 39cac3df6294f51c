"""One spelling of what can be written in several ways, and concepts: a verb and a noun with their synonyms."""

from __future__ import annotations

import functools
import re
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import re2

from turnwise.data_file import data_file
from turnwise.envs.toolworld.speech.ways import loosened
from turnwise.envs.worlds.vocabulary import SCALES, UNITS

_SIGNS = str.maketrans(
    {**dict.fromkeys("\u2018\u2019", "'"), **dict.fromkeys(map(chr, range(0x2010, 0x2016)), "-")}
)
_EMAIL, _ILL = r"\be-?mail", r"(?<=\. )ill\b|^ill\b"
_CONTRACTIONS = (
    ("*", r"[*_`]{2,}", ""), ("_", r"[*_`]{2,}", ""), ("`", r"`", ""), ("mail", _EMAIL, "email"), ("wo", r"\bwo n?'?t\b|\bwon't\b", "will not"),
    ("can", r"\bcan't\b|\bcannot\b", "can not"), ("shan't", r"\bshan't\b", "shall not"), ("n't", r"\b(\w+)n't\b", r"\1 not"),
    ("'ll", r"\b(\w+)'ll\b", r"\1 will"), ("'s been", r"\b(\w+)'s (?=been\b)", r"\1 has "), ("'ve", r"\b(\w+)'ve\b", r"\1 have"),
    ("let's", r"\blet's\b", "let us"), ("'re", r"\b(\w+)'re\b", r"\1 are"), ("i'm", r"\bi'm\b", "i am"), ("'d", r"\b(i|you|we|they|he|she|it|that|there)'d\b", r"\1 would"),
    ("'s", r"\b(that|it|this|there|here|what|who|where|which|when|how|everything|he|she)'s\b", r"\1 is"),
    ("'s ", r"\b(\w+)'s (?=(?:on|off|active|now|all|been|already|done|not|still|gone|ready|back|sorted|cancelled|changed|booked|set|fixed)\b)", r"\1 is "),
    ("disturb", r"\bdo not[ -]disturb\b|\bdo-not-disturb\b", "silent mode"), ("pre-paid", r"\bpre-paid\b", "prepaid"), ("re-", r"\bre-(\w)", r"re\1"), ("o", r"\bok\b|\bo\.k\.", "okay"), ("pl", r"\bpls\b|\bplz\b", "please"),
    ("dont", r"\bdont\b", "do not"), ("cant", r"\bcant\b", "can not"), ("nt", r"\b(did|does|is|was|are|were|has|have|had|would|could|should)nt\b", r"\1 not"), ("wont", r"\bwont\b", "will not"),
    ("im", r"\bim\b", "i am"), ("ive", r"\bive\b", "i have"), ("ill", _ILL, "i will"), ("youre", r"\byoure\b", "you are"), ("emme", r"\blemme\b", "let me"), ("imme", r"\bgimme\b", "give me"),
    ("right place", r"\b(?:to|in|at) the right place\b", "here"), ("it from here", r"\btake (?:it|this|things) from here\b", "do the rest"), ("gonna", r"\bgonna\b", "going to"), ("wanna", r"\bwanna\b", "want to"), ("u", r"\bu\b", "you"), ("ur", r"\bur\b", "your"),
)  # fmt: skip
"""Text that stands where the rule has something to do (most texts have none of it), the rule, and what it
writes."""
_UNITS = {word: value for word, value in UNITS.items() if word != "one"}
_ANY = "|".join(sorted((*_UNITS, "one"), key=len, reverse=True))
_NUMBER = re.compile(
    rf"\b(?:(?:an?|one|\d+) (?={'|'.join(SCALES)})|(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))}|one(?=[ -](?:{'|'.join(SCALES)}))))"
    rf"(?:(?:[ -]|(?<=hundred) and )?(?:{_ANY}|{'|'.join(SCALES)})\b)*"
)
_PART = re.compile(rf"{_ANY}|{'|'.join(SCALES)}|\d+")
_TYPOS = {
    "shal": "shall",
    "cofirm": "confirm",
    "dolars": "dollars",
    "recieve": "receive",
    "adress": "address",
    "cancelation": "cancellation",
    "reservaton": "reservation",
}
_NUMBER_SIGNS = tuple(sorted({word[:4] for word in (*_UNITS, *SCALES)}))
"""Beginnings of the words of numbers: where none of them stands, there is nothing to count."""
_TYPO = re.compile(rf"\b(?:{'|'.join(_TYPOS)})\b")
_RULES = tuple((sign, re.compile(pattern), new) for sign, pattern, new in _CONTRACTIONS)
_SPELLED = re2.compile(
    "|".join(
        [
            *(loosened(pattern) for _, pattern, _ in _CONTRACTIONS if pattern not in (_EMAIL, _ILL)),
            *(
                r"\be-mail",
                r"\bill\b",
                rf"\b(?:{'|'.join(_TYPOS)})\b",
                *SCALES,
                rf"\b(?:{'|'.join(_UNITS)})",
            ),
        ]
    )
)
"""Whatever a rule of spelling or counting has to do with."""
_TOKEN = re.compile(r"[a-z0-9]+(?:['@._+-][a-z0-9]+)*")
_DOUBLE = re.compile(r"([b-df-hj-np-tv-z])\1$")
_IRREGULAR = {
    "sent": "send", "gave": "give", "given": "give", "took": "take", "taken": "take", "paid": "pay", "made": "make",
    "got": "get", "gotten": "get", "did": "do", "done": "do", "went": "go", "gone": "go", "told": "tell", "lost": "lose",
    "swapped": "swap", "rebooked": "rebook", "shipped": "ship", "bought": "buy", "rang": "ring", "withdrew": "withdraw",
    "ran": "run", "chosen": "choose", "held": "hold", "mms": "mms", "apns": "apn", "is": "is", "this": "this", "gbs": "gb",
    "wrote": "write", "written": "write", "brought": "bring", "undid": "undo", "undone": "undo", "news": "news",
}  # fmt: skip
_ID = re.compile(r"(?:\S+ )?(?=\S*\d)(?=\S*[a-z])\S+")
_LIGHT_TEXT = "get giv go put tak send set us mak be hav do bring proces start ad"
_LIGHT = frozenset(_LIGHT_TEXT.split())
_AS_NOUN = re.compile(r"\b(?:the|a|an|your|thi|that|any|no|our)\s$")
_ID_BEFORE = re.compile(
    r"(?<!\S)(?=\S*\d)(?=\S*[a-z])\S+ (?:(?:get|is|are|has|have|wil|would|can|could|shal|stil|now|to|be|been|being) )+$"
)
"""An id that something is done to: "w123 gets cancelled"."""
_ID_WITHIN = re.compile(r"\s(?=\S*\d)(?=\S*[a-z])\S+\s")
"""An id between the words of a verb: "switch l123 back on"."""
_PRONOUN = re.compile(
    r"\b(it|that|this|them|these|those|one|so|you|all|both|everyth|the whol (?:thing|lot)|\d+)\b"
)


_LONG_NUMBER = re.compile(r"[0-9]{2,}")
_SCALE_SIGNS = ("hundred", "thousand", "illion")


def shape_of(text: str, known: AbstractSet[str] = frozenset()) -> str:
    """The text with sevens in its numbers of two and more digits, but the ``known`` ones: no rule knows any other.

    >>> shape_of("Cancel W4711 for $4.50, 2 items?"), shape_of("12 hundred dollars"), shape_of("10 or 20?", {"20"})
    ('Cancel W7777 for $4.77, 2 items?', '12 hundred dollars', '77 or 20?')
    """
    lower = text.lower()
    if any(sign in lower for sign in _SCALE_SIGNS):  # a number before such a word is counted with it
        return text
    return _LONG_NUMBER.sub(lambda found: found[0] if found[0] in known else "7" * len(found[0]), text)


@functools.lru_cache(maxsize=8192)
def normal(text: str) -> str:
    """Lower case, without contractions, numbers in digits.

    >>> normal("I can't add seven GB, I'm sorry")
    'i can not add 7 gb, i am sorry'
    """
    text = text.lower()
    if not text.isascii():
        text = text.translate(_SIGNS)
    elif _SPELLED.search(text.encode()) is None:  # most texts need nothing
        return text
    for sign, pattern, new in _RULES:
        if sign in text:
            text = pattern.sub(new, text)
    if any(typo in text for typo in _TYPOS):
        text = _TYPO.sub(lambda m: _TYPOS[m[0]], text)
    return _NUMBER.sub(_counted, text) if any(sign in text for sign in _NUMBER_SIGNS) else text


def _counted(found: re.Match[str]) -> str:
    """A number in words as digits."""
    total = now = 0
    parts = _PART.findall(found[0])
    for place, part in enumerate(parts):
        if place and now % 100 > 9 and _UNITS.get(part, 0) > 9:  # a price: seventeen fifty
            cents = sum(_UNITS.get(one, 1) for one in parts[place:])
            return f"{total + now}.{cents:02}" if cents < 100 else f"{total + now} {cents}"
        if part in SCALES:
            scale = SCALES[part]
            now = max(now, 1) * scale
            total, now = (total + now, 0) if scale > 100 else (total, now)
        else:
            now += int(part) if part.isdecimal() else _UNITS.get(part, 1)
    return f"{total + now}"


@functools.lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A word without its ending, the same for all forms of a regular verb.

    >>> [stem(word) for word in ("cancel", "cancelled", "cancelling", "change", "changing", "added", "add")]
    ['cancel', 'cancel', 'cancel', 'chang', 'chang', 'ad', 'ad']
    """
    word = _IRREGULAR.get(word, word)
    if any(letter.isdigit() for letter in word) or len(word) < 3 or word == "off":
        return word  # "off" is no form of "of"
    for ending, least in (("ing", 6), ("ies", 5), ("ied", 5), ("ed", 5), ("es", 6), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
            break
    word = _DOUBLE.sub(r"\1", word.removesuffix("e") if len(word) > 3 else word)
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 3 else word


@functools.lru_cache(maxsize=8192)
def stems(text: str) -> str:
    """The stems of a normal text, with blanks between them."""
    return " ".join(stem(token) for token in _TOKEN.findall(text))


@functools.cache
def plain_words(name: str) -> frozenset[str]:
    """The words of words.yaml that have a name, as they are written."""
    return frozenset(data_file("turnwise.envs.toolworld.speech", "words", dict[str, str])[name].split())


@functools.cache
def word_set(name: str) -> frozenset[str]:
    """The stems of the words of words.yaml that have a name."""
    return frozenset(stems(" ".join(plain_words(name))).split())


class Concept(NamedTuple):
    """Something that can be done: verbs and nouns, each a list of synonyms with ``|`` between them.

    A verb of two words ("turn off") may have other words within it. Without nouns the verb alone is enough.
    """

    verbs: str
    nouns: str = ""


class Match(NamedTuple):
    """Mention of a concept in a clause. ``named``: with the noun; else by a pronoun or by nothing."""

    named: bool
    place: int  # of the verb, in stems
    light: bool = False  # by a verb that says little by itself ("get", "put")


@functools.cache
def _pattern(words: str, gap: int) -> re.Pattern[str]:
    between = rf"(?:\s\S+){{0,{gap}}}?\s" if gap else r"\s"
    alternatives = [between.join(map(re.escape, stems(normal(way)).split())) for way in words.split("|")]
    return re.compile(rf"(?<!\S)(?:{'|'.join(sorted(alternatives, key=len, reverse=True))})(?!\S)")


@functools.cache
def firsts(words: str) -> frozenset[str]:
    """The stems with which the phrases begin."""
    return frozenset(said[0] for way in words.split("|") if (said := stems(normal(way)).split()))


@functools.lru_cache(maxsize=16384)
def parts(stemmed: str) -> frozenset[str]:
    """The stems of a text without their order."""
    return frozenset(stemmed.split())


def mentions(words: str, stemmed: str) -> bool:
    """Say whether one of the ``words`` (phrases with ``|`` between them) occurs."""
    if firsts(words).isdisjoint(parts(stemmed)):  # a look at the words is cheaper than a search
        return False
    return _pattern(words, 0).search(stemmed) is not None


def speaks_of(concept: Concept, stemmed: str, context: str = "") -> Match | None:
    """Find how a clause speaks of a concept; ``context`` are the stems of what was said before it.

    >>> cut = Concept("cancel|call off", "order")
    >>> speaks_of(cut, stems("i have called your order off"))
    Match(named=True, place=6, light=False)
    >>> speaks_of(cut, stems("shall i cancel it"))
    Match(named=False, place=7, light=False)
    """
    if firsts(concept.verbs).isdisjoint(parts(stemmed)):
        return None
    found = _pattern(concept.verbs, 4).search(stemmed)
    if found is None:
        return None
    light = found[0] in _LIGHT
    if not concept.nouns or mentions(concept.nouns, stemmed):
        return Match(True, found.start(), light)
    vague = light or _AS_NOUN.search(stemmed[: found.start()]) is not None
    rest = stemmed[found.end() :].strip()
    if _ID_WITHIN.search(found[0]):
        return Match(False, found.start(), light)
    if (
        context
        and mentions(concept.nouns, context)
        and (_PRONOUN.search(stemmed) or not rest or rest.startswith("and i "))
    ):
        return Match(True, found.start(), light)
    if _ID_BEFORE.search(stemmed[: found.start()]):
        return Match(True, found.start(), light)
    if _ID.match(rest):
        return Match(not vague, found.start(), light=True)
    if (
        not rest
        or _PRONOUN.match(rest)
        or rest.startswith(("for you", "now", "right away", "pleas", "yet", "alreadi", "then", "and i "))
    ):
        return Match(False, found.start(), light)
    return None
