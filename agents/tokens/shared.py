"""Sharing between texts: where two of them part."""

from __future__ import annotations

from collections.abc import Callable


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
