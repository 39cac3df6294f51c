"""Language that belongs to a split: ways to say a thing, of which each split has its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from turnwise.tasks.core import Split


class Wordings(NamedTuple):
    """Ways to say one thing, so that no split can say what another one says."""

    train: tuple[str, ...]
    dev: tuple[str, ...]
    test: tuple[str, ...]

    def of(self, split: Split) -> tuple[str, ...]:
        return {Split.TRAIN: self.train, Split.DEV: self.dev, Split.TEST: self.test}[split]

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, handler: Any) -> Any:
        """Return the schema of wordings in a data file: a list, or a mapping of the three splits to lists."""
        from pydantic_core import core_schema

        lists = handler(dict[Split, tuple[str, ...]] | tuple[str, ...])
        return core_schema.no_info_after_validator_function(_of_lists, lists)


def _of_lists(found: dict[Split, tuple[str, ...]] | tuple[str, ...]) -> Wordings:
    if isinstance(found, dict):
        for split in Split:
            if not found.get(split):
                raise ValueError(f"there is no wording of {split}")
        return Wordings(*(found[split] for split in Split))
    return of_list(found)


def of_list(said: Sequence[str]) -> Wordings:
    """Wordings of a list: the last is of test, the last but one of dev, the others of train.

    >>> of_list(["a", "b", "c", "d"])
    Wordings(train=('a', 'b'), dev=('c',), test=('d',))
    """
    if len(said) < 3:
        raise ValueError(f"{len(said)} wordings are too few for three splits")
    return Wordings(tuple(said[:-2]), (said[-2],), (said[-1],))


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
    return of_list([part.strip() for part in text.split("|")])
