"""Phrasing of questions and clues (phrases.yaml): wordings of each split."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.data_file import data_file
from turnwise.envs.wordings import Wordings


class SearchPhrases(NamedTuple):
    """Name → wordings, of questions and of clues; and what a kind of thing did in its first year."""

    questions: Mapping[str, Wordings]
    clues: Mapping[str, Wordings]
    came_to_be: Mapping[str, Wordings]


@functools.cache
def search_phrases() -> SearchPhrases:
    """Return the wordings of questions and clues."""
    return data_file("turnwise.envs.search", "phrases", SearchPhrases)
