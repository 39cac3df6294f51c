"""Sharing between texts: a memory of what was made of them, bounded by their length, and where two of them part."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")


class TextCache(Generic[Key, Made]):
    """Keeps what was made of texts, as a pure function of them; the oldest go first.

    >>> cache = TextCache[str, int](5)
    >>> for word in ("a", "bcd", "ef"):
    ...     cache.keep(word, len(word), len(word))
    >>> cache.get("a"), cache.get("ef")
    (None, 2)

    Args:
        most: characters that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._kept: dict[Key, tuple[Made, int]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Made | None:
        """Return what was made of a text; None where that is not known any more."""
        found = self._kept.get(key)
        return None if found is None else found[0]

    def keep(self, key: Key, made: Made, size: int) -> None:
        """Keep what was made of a text of so many characters."""
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (made, size)
            self._size += size
            while self._size > self._most:
                self._size -= self._kept.pop(next(iter(self._kept)))[1]


def shared_length(one: str, other: str) -> int:
    """Count the characters that two texts begin alike with.

    >>> shared_length("abcd", "abX"), shared_length("", "a"), shared_length("ab", "ab")
    (2, 0, 2)
    """
    return _largest(min(len(one), len(other)), lambda low, high: one[low:high] == other[low:high])


def shared_ending(one: str, other: str) -> int:
    """Count the characters that two texts end alike with.

    >>> shared_ending("abcd", "Xcd"), shared_ending("", "a"), shared_ending("ab", "ab")
    (2, 0, 2)
    """

    def alike(low: int, high: int) -> bool:
        return one[len(one) - high : len(one) - low] == other[len(other) - high : len(other) - low]

    return _largest(min(len(one), len(other)), alike)


def _largest(most: int, alike: Callable[[int, int], bool]) -> int:
    """Return the largest number up to ``most`` of which all is alike; ``alike`` looks at the part from low to high alone, so
    that each part is compared once."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if alike(low, middle):
            low = middle
        else:
            most = middle - 1
    return low
