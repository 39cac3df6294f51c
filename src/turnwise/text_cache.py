"""A memory of what was made of texts, bounded by their length."""

from __future__ import annotations

import threading
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

    def __contains__(self, key: Key) -> bool:
        return key in self._kept

    def keep(self, key: Key, made: Made, size: int) -> None:
        """Keep what was made of a text of so many characters."""
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (made, size)
            self._size += size
            while self._size > self._most:
                self._size -= self._kept.pop(next(iter(self._kept)))[1]
