"""Language that belongs to a split: ways to say a thing, of which each split has its own."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.tasks.core import Split


class Wordings(NamedTuple):
    """Ways to say one thing, so that no split can say what another one says."""

    train: tuple[str, ...]
    dev: tuple[str, ...]
    test: tuple[str, ...]

    def of(self, split: Split) -> tuple[str, ...]:
        return {Split.TRAIN: self.train, Split.DEV: self.dev, Split.TEST: self.test}[split]


def ways(text: str) -> Wordings:
    """Wordings, separated by ``|``: the last is of test, the last but one of dev, the others of train.

    Where dev and test have several, ``||`` parts the three.

    >>> ways("a | b | c | d")
    Wordings(train=('a', 'b'), dev=('c',), test=('d',))
    >>> ways("a || b || c | d")
    Wordings(train=('a',), dev=('b',), test=('c', 'd'))
    """
    if "||" in text:
        train, dev, test = (tuple(part.strip() for part in group.split("|")) for group in text.split("||"))
        return Wordings(train, dev, test)
    *usual, dev, test = (part.strip() for part in text.split("|"))
    assert usual, text
    return Wordings(tuple(usual), (dev,), (test,))
