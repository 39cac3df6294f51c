"""Likeness of two lists: overlap, and pairs of their items that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def overlap(one: Sequence[str], two: Sequence[str]) -> float:
    """The share of what is in both sets among what is in either; 1 where both are empty.

    >>> overlap("123", "234"), overlap("", ""), overlap("1", "")
    (0.5, 1.0, 0.0)
    """
    first, second = {*one}, {*two}
    return len(first & second) / len(first | second) if first | second else 1.0


def likeness(one: str, two: str) -> float:
    """The share of words that two texts share, but for case, as Dice's coefficient of multisets.

    >>> likeness("the red Box", "the box"), likeness("7", "7"), likeness("7", "8")
    (0.8, 1.0, 0.0)
    """
    first, second = Counter(one.lower().split()), Counter(two.lower().split())
    return 2 * (first & second).total() / max(1, first.total() + second.total())


def matched(found: Sequence[str], gold: Sequence[str], least: float) -> list[float]:
    """Of each item that was found, in order, its likeness to the open gold item that is likest, which is then taken; 0 where
    none is liker than ``least``.

    >>> matched(["a b", "a", "c"], ["a", "a b"], 0.5), matched(["a", "a"], ["a"], 0.5)
    ([1.0, 1.0, 0.0], [1.0, 0.0])
    """
    left, worth = [*gold], list[float]()
    for item in found:
        like = [likeness(item, one) for one in left]
        best = max(like, default=0.0)
        if best > least:
            left.pop(like.index(best))
        worth.append(best if best > least else 0.0)
    return worth
