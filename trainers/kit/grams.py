"""Words of a text, and how often several in a row stand again."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORD = re.compile(r"[\w'’]+")


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return WORD.findall(text.lower())


def repeated(words: Sequence[str], n: int) -> float:
    """The share of n words in a row that stood before.

    >>> repeated("a b a b a".split(), 2), repeated(["a"], 2)
    (0.5, 0.0)
    """
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
