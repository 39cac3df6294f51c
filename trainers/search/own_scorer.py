"""A scorer of one's own, by the file or module that holds it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from turnwise.blame import describe
from turnwise.envs.sources import load_module, look_here
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.trainers.search.core import NodeScorer

_NEEDED = ("name", "whole", "forks", "oracle", "score", "close")


def own_scorer(target: str) -> NodeScorer:
    """The scorer at ``module:object`` or ``path/to/file.py:object``; a class is made without arguments.

    Raises:
        TurnwiseError: it is not there, cannot be made or is none.
    """
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise TurnwiseError(f"The scorer python:{target} is not complete.", "Write python:FILE.py:OBJECT.")
    look_here()
    module = load_module(where)
    if not hasattr(module, name):
        raise NotFoundError(f"scorer in {Path(where).name} called", name, vars(module))
    found = getattr(module, name)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            raise TurnwiseError(
                f"{target} cannot be made: {describe(error)}.", "It is called without arguments."
            ) from error
    return as_scorer(found)


def as_scorer(given: object) -> NodeScorer:
    """A scorer as it is.

    Raises:
        TurnwiseError: it is none, with what a scorer needs.
    """
    missing = [one for one in _NEEDED if not hasattr(given, one)]
    if missing:
        raise TurnwiseError(
            f"{given!r:.60} is no scorer: it has no {', '.join(missing)}.",
            "Give it name, whole, forks, oracle, async score(searcher, nodes) and close() (docs/how-to/test-time-search.md).",
        )
    return cast(NodeScorer, given)
