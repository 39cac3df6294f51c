"""BM25 search over a catalogue, with one order for equal scores.

The ranking is Lucene's BM25 (k₁ = 1.5, b = 0.75) by the library bm25s; unlike WebShop's Lucene analyzer
it does not stem. Only products that share a word with the query are found, the best fifty of them;
equal scores are ordered by position in the catalogue.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import bm25s

TOP = 50
"""How many results a search returns (WebShop's number)."""

_REMEMBERED = 4096
_WORD = re.compile(r"[a-z0-9]+")


def words_of(text: str) -> list[str]:
    """The lower-case words of a text.

    >>> words_of("Soft, 2-pack Scarf!")
    ['soft', '2', 'pack', 'scarf']
    """
    return _WORD.findall(text.lower())


class SearchIndex:
    """A read-only BM25 index. Build it with :meth:`of_ids` or :meth:`of_texts`."""

    def __init__(self, engine: bm25s.BM25, words: Mapping[str, int]) -> None:
        self._engine = engine
        self._words = words
        self._rank = functools.lru_cache(maxsize=_REMEMBERED)(self._rank_uncached)

    @classmethod
    def of_ids(cls, documents: Sequence[list[int]], words: Mapping[str, int]) -> SearchIndex:
        """Index documents given as numbers of words; ``words`` numbers them from 0 without gaps."""
        import bm25s  # here, because it takes a second to import

        engine = bm25s.BM25()
        engine.index((list(documents), dict(words)), show_progress=False, create_empty_token=False)
        return cls(engine, words)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> SearchIndex:
        """Index texts."""
        words: dict[str, int] = {}
        documents = [[words.setdefault(word, len(words)) for word in words_of(text)] for text in texts]
        return cls.of_ids(documents, words)

    def rank(self, query: str) -> tuple[int, ...]:
        """Positions of at most :data:`TOP` products, best first."""
        known = sorted(self._words[word] for word in words_of(query) if word in self._words)
        return self._rank(tuple(known)) if known else ()

    def _rank_uncached(self, word_ids: tuple[int, ...]) -> tuple[int, ...]:
        scores = self._engine.get_scores_from_ids(list(word_ids))
        worst = 0.0
        if len(scores) > TOP:
            worst = np.partition(scores, len(scores) - TOP)[len(scores) - TOP]
        found = np.flatnonzero(scores >= worst) if worst > 0 else np.flatnonzero(scores)
        order = np.argsort(-scores[found], kind="stable")[:TOP]
        return tuple(found[order].tolist())
