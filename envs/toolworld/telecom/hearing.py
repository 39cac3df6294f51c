"""Things of a phone, told apart where one's name stands in another's, and on from off."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.envs.toolworld.speech.lexicon import Lexicon, SpokenDeed
from turnwise.envs.toolworld.speech.words import Match, normal, speaks_of, stems

ROAMING = "data_roaming"
"""The deeds whose thing is called as the line's own service is."""
_ROAMING = re.compile(r"(?<!\S)roam(?!\S)")
_OF_LINE = re.compile(r"(?<!\S)(?:line|account|l\d+)(?!\S)")
_OF_PHONE = re.compile(r"(?<!\S)(?:phone|devic|handset|set|screen)(?!\S)")
_LOOKS = re.compile(
    r"(?<!\S)(?:check|see|look|verifi|confirm|tel me|let me know|find out)(?: \S+){0,2}? (?:if|whether|that)(?= ).*?(?= and (?!(?:is|are|not)\b)| then |$)"
)
"""Thing that is only to be looked at: "check whether mobile data is on"."""
_ON_OR_OFF = {
    **dict.fromkeys(("on", "enabl", "activat", "start"), "on"),
    **dict.fromkeys(("off", "disabl", "deactivat", "stop"), "off"),
}  # fmt: skip
_ARTICLES = frozenset(("the", "your", "also"))
_AND = re.compile(r" (?:and|then)(?: then| also| pleas)* ")
_OFF_AND_ON = re.compile(r"(?:turn|switch|power|off|shut)(?!\S)")
"""Words for a restart that could be the switching of any thing."""


class _Thing(NamedTuple):
    """Place of a thing of some deeds in a clause, in words."""

    start: int
    end: int
    deeds: frozenset[str]


@functools.cache
def _names(nouns: str) -> tuple[tuple[str, ...], ...]:
    return tuple({tuple(stems(normal(way)).split()): None for way in nouns.split("|") if way})


@dataclass(frozen=True, eq=False)
class PhoneLexicon(Lexicon):
    """A lexicon in whose clauses each word belongs to the longest name that it is part of."""

    def ordered(self, stemmed: str, context: str = "") -> list[tuple[SpokenDeed, Match]]:
        """The deeds of which a clause speaks, each by its own name and in its own direction."""
        if looked := _LOOKS.search(stemmed):
            context = f"{context} {looked[0]}"
            stemmed = f"{stemmed[: looked.start()]} {stemmed[looked.end() :]}".strip()
        found: dict[str, tuple[SpokenDeed, Match]] = {}
        before, place, switched = context, 0, ""
        for piece in self._pieces(stemmed):
            for deed, match in self._in_piece(self._with_verb(piece, switched), before):
                if deed.name not in found or (match.named and not found[deed.name][1].named):
                    found[deed.name] = (deed, match._replace(place=place + match.place))
            before, place = f"{before} {piece}", place + len(piece) + 5
            switched = _switching(piece) or switched
        return list(found.values())

    def _with_verb(self, piece: str, switched: str) -> str:
        """A piece that begins with a thing, with the verb of the piece before it: "turn Wi-Fi off and the VPN"."""
        things = self._things(piece)
        if not switched or not things or _switching(piece.partition(" ")[0]):
            return piece
        if set(piece.split()[: things[0].start]) - _ARTICLES:
            return piece
        own = any(word in _ON_OR_OFF for word in piece.split())
        return f"turn {piece}" if own else f"turn {switched} {piece}"

    def _pieces(self, stemmed: str) -> list[str]:
        """A clause cut where another thing's turn comes: at an "and" between two, or after the "off" of the one before."""
        pieces = _AND.split(stemmed)
        if len(pieces) > 1 and not all(self._things(piece) for piece in pieces):
            pieces = [stemmed]
        return [part for piece in pieces for part in _cut(piece.split(), self._things(piece))]

    def _in_piece(self, stemmed: str, context: str) -> list[tuple[SpokenDeed, Match]]:
        words, things = stemmed.split(), self._things(stemmed)
        directions = _directions(words, things)
        found: list[tuple[SpokenDeed, Match]] = []
        for deed in self.deeds:
            others = [thing for thing in things if deed.name not in thing.deeds]
            match = speaks_of(deed.concept, _without(words, others), "" if things else context)
            if not (match and match.named) and deed.name.startswith(ROAMING):
                match = _bare_roaming(deed, stemmed, context)
            if match and things and not deed.concept.nouns and _OFF_AND_ON.match(stemmed[match.place :]):
                continue  # it is the thing that goes off and on
            if match and _fits(deed.name, directions):
                found.append((deed, match))
        return found

    def _things(self, stemmed: str) -> list[_Thing]:
        """The things that a clause names, without those whose names are parts of longer ones."""
        return _things(self, stemmed)


@functools.lru_cache(maxsize=8192)
def _things(lexicon: PhoneLexicon, stemmed: str) -> list[_Thing]:
    words = stemmed.split()
    spans: dict[tuple[int, int], set[str]] = {}
    for deed in lexicon.deeds:
        for name in _names(deed.concept.nouns):
            for start in range(len(words) - len(name) + 1):
                if tuple(words[start : start + len(name)]) == name:
                    spans.setdefault((start, start + len(name)), set()).add(deed.name)
    return [
        _Thing(start, end, frozenset(names))
        for (start, end), names in sorted(spans.items())
        if not any(a <= start and end <= b and (a, b) != (start, end) for a, b in spans)
    ]


def _cut(words: list[str], things: Sequence[_Thing]) -> list[str]:
    """A piece cut before each thing that follows an "on" or "off" of the one before it."""
    cuts = [0]
    for last, thing in itertools.pairwise(things):
        begin = thing.start - (words[thing.start - 1] in _ARTICLES)
        if begin > last.end and words[begin - 1] in ("on", "off"):
            cuts.append(begin)
    return [" ".join(words[start:end]) for start, end in itertools.pairwise([*cuts, len(words)])]


def _without(words: list[str], things: Sequence[_Thing]) -> str:
    """A clause without the names of some things; a sign stands where each was."""
    taken = {place for thing in things for place in range(thing.start, thing.end)}
    return " ".join("…" if place in taken else word for place, word in enumerate(words))


def _directions(words: list[str], things: list[_Thing]) -> dict[str, set[str]]:
    """Map each deed to the ways, on or off, that the clause says its thing is to go: what follows the thing
    counts first."""
    found: dict[str, set[str]] = {}
    ends = [0, *(thing.end for thing in things)]
    starts = [*(thing.start for thing in things[1:]), len(words)]
    for thing, after, before in zip(things, starts, ends, strict=False):
        said = {_ON_OR_OFF[word] for word in words[thing.end : after] if word in _ON_OR_OFF}
        said = said or {_ON_OR_OFF[word] for word in words[before : thing.start] if word in _ON_OR_OFF}
        for name in thing.deeds:
            found.setdefault(name, set()).update(said)
    return found


def _fits(deed: str, directions: dict[str, set[str]]) -> bool:
    """Say whether nothing says that a thing is to go the other way than a deed lets it go."""
    said, way = directions.get(deed, set[str]()), deed.rpartition("_")[2]
    return way not in ("on", "off") or not said or way in said


def _switching(piece: str) -> str:
    """Return the way in which a piece switches something, "on" or "off"; "" where it says neither."""
    return next((_ON_OR_OFF[word] for word in piece.split() if word in _ON_OR_OFF), "")


def _bare_roaming(deed: SpokenDeed, stemmed: str, context: str) -> Match | None:
    """Roaming alone: the phone's, unless the line is spoken of."""
    if not _ROAMING.search(stemmed):
        return None
    if not _OF_PHONE.search(stemmed) and _OF_LINE.search(f"{context} {stemmed}"):
        return None
    if _OF_LINE.search(stemmed):
        return None
    return speaks_of(deed.concept, _ROAMING.sub("data roam", stemmed), context)
