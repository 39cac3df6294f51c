"""Many ways to say one thing, as one search: RE2 looks for those that it can read, Python's ``re`` for the others.

Python tries every way at every place of a text; RE2 reads the text once, however many ways there are, which makes a
clause three times as quick to understand. It knows no look-around, so it looks for such a way without, and only where it
finds that Python looks too. Before that, one look at a text tells which of all patterns may stand in it: a pattern needs some
of its letters, whatever else a text has.
"""

from __future__ import annotations

import functools
import re

import re2


def _for_re2(pattern: str) -> str:
    """The pattern as RE2 writes it: letters by their number in another way."""
    return re.sub(r"\\u([0-9a-f]{4})", r"\\x{\1}", pattern)


class _Sieve:
    """All patterns together, as far as one look at an ASCII text tells which of them may stand in it."""

    def __init__(self) -> None:
        self._filter = re2.Filter()
        self.closed = False

    def add(self, pattern: str) -> int:
        return self._filter.Add(pattern)

    def regexp(self, place: int) -> re2._Regexp:  # pyright: ignore[reportPrivateUsage]
        return self._filter.re(place)

    def close(self) -> None:
        """Sift from now on; patterns that are written later are searched for unsifted."""
        if not self.closed:
            self._filter.Compile()
            self.closed = True

    def standing(self, text: str) -> frozenset[int]:
        """The places of those that may stand in a text."""
        return frozenset(self._filter.Match(text, True) or ())


SIEVE = _Sieve()
_standing = functools.lru_cache(maxsize=256)(SIEVE.standing)


class _Loose:
    """A pattern without look-arounds, in ASCII texts."""

    def __init__(self, pattern: str) -> None:
        written = _for_re2(pattern)
        self._place = -1 if SIEVE.closed else SIEVE.add(written)
        self._regexp = re2.compile(written) if SIEVE.closed else SIEVE.regexp(self._place)

    def stands_in(self, text: str) -> bool:
        """Say whether it stands somewhere in a text."""
        if SIEVE.closed and self._place >= 0 and self._place not in _standing(text):
            return False
        # Asked in bytes: places in text are not wanted.
        return self._regexp.search(text.encode()) is not None


class GuardedPattern:
    """A pattern in lower case that RE2 rules out first where it can, since most patterns stand in no text."""

    def __init__(self, pattern: str) -> None:
        self._exact = re.compile(pattern)
        self._loose = _Loose(loosened(pattern))

    def search(self, text: str) -> re.Match[str] | None:
        """Find where the pattern stands first in the text."""
        # Beyond ASCII the two know different words.
        if text.isascii() and not self._loose.stands_in(text):
            return None
        return self._exact.search(text)


class Alternation:
    """A pattern of many alternatives in lower case, in texts in lower case."""

    def __init__(self, *ways: str) -> None:
        self.ways = [one for way in ways for one in alternatives(way)]
        looking = [one for one in self.ways if loosened(one) != one]
        plain = [one for one in self.ways if one not in looking]
        self._any = _Loose("|".join(map(loosened, self.ways)))
        self._plain = re2.compile(_for_re2("|".join(plain) or r"\z\A."))
        self._looking = re.compile("|".join(looking) or r"(?!)")
        self._looks = bool(looking)

    def search(self, text: str) -> bool:
        """Say whether one of them stands somewhere in the text."""
        if text.isascii():
            found = self._any.stands_in(text)
            if not found or not self._looks:
                return found
        return self._plain.search(text.encode()) is not None or self._looking.search(text) is not None

    def match(self, text: str) -> bool:
        """Say whether the text begins with one of them."""
        return self._plain.match(text.encode()) is not None or self._looking.match(text) is not None


def alternatives(pattern: str) -> list[str]:
    """The parts of a pattern between the bars that stand in no group.

    >>> alternatives("a(?:b|c)|[|]e|d")
    ['a(?:b|c)', '[|]e', 'd']
    """
    found, depth, begin = list[str](), 0, 0
    for place, sign in _signs(pattern):
        if sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and depth == 0:
            found.append(pattern[begin:place])
            begin = place + 1
    return [*found, pattern[begin:]]


@functools.cache
def loosened(pattern: str) -> str:
    """A pattern without its look-arounds: it stands wherever the pattern does, and perhaps elsewhere.

    >>> loosened(r"\\bno\\b(?! (?:joke|doubt))|(?<!a )yes(?:,|$)")
    '\\\\bno\\\\b|yes(?:,|$)'
    """
    kept, depth, begin, inside = list[str](), 0, 0, 0
    for place, sign in _signs(pattern):
        if sign == "(":
            depth += 1
            if not inside and re.match(r"\(\?<?[=!]", pattern[place:]):
                kept.append(pattern[begin:place])
                inside = depth
        elif sign == ")":
            if inside == depth:
                begin, inside = place + 1, 0
            depth -= 1
    return "".join([*kept, pattern[begin:]])


def _signs(pattern: str) -> list[tuple[int, str]]:
    """The brackets and bars of a pattern that mean something, with their places."""
    found, listed, place = list[tuple[int, str]](), False, 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\":
            place += 1
        elif listed:
            listed = sign != "]"
        elif sign == "[":
            listed = True
        elif sign in "()|":
            found.append((place, sign))
        place += 1
    return found
