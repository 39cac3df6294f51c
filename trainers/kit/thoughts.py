"""Ends of a reply's thoughts, in tokens."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import TypeAlias

from turnwise.tools.thoughts import closing, leading_thoughts

Decode: TypeAlias = Callable[[Sequence[int]], str]


def thought_length(said: Sequence[int], decode: Decode, opened: str = "") -> int:
    """The number of tokens of the thoughts with which a reply begins; where the prompt ``opened`` one, without the tag that closes it.

    >>> decode = lambda ids: "".join({1: "<think>", 2: "up?", 3: "</think>", 4: "go"}[x] for x in ids)
    >>> thought_length([1, 2, 3, 4], decode), thought_length([4], decode), thought_length([2, 3, 4], decode, "<think>")
    (3, 0, 1)
    """
    text = decode(list(said))
    end = leading_thoughts(text)
    if end and opened and (closed := text.rfind(closing(opened), 0, end)) >= 0:
        return tokens_within(said, decode, closed)
    return bisect.bisect_left(range(len(said)), end, key=lambda n: len(decode(list(said[:n])))) if end else 0


def tokens_within(said: Sequence[int], decode: Decode, end: int) -> int:
    """The most tokens whose text has no more than ``end`` characters."""
    return bisect.bisect_right(range(len(said) + 1), end, key=lambda n: len(decode(list(said[:n])))) - 1
