"""BM25 search over a catalogue, with one order for equal scores.

The ranking is Lucene's BM25 (k₁ = 1.5, b = 0.75) by the library bm25s; unlike WebShop's Lucene analyzer
it does not stem, but takes a plural that no product has for its singular. Only products that share a word with the query are found, the best fifty of them;
equal scores are ordered by position in the catalogue.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from turnwise.envs.keywords import keyword_engine
from turnwise.envs.shop.vocabulary import IDLE_WORDS

if TYPE_CHECKING:
    import bm25s

TOP = 50
"""Number of results that a search returns at most (WebShop's number)."""

_REMEMBERED = 4096
_PLURALS = (("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", ""))
"""Endings of plurals → those of the words."""
_WORD = re.compile(r"[a-z0-9]+")


def words_of(text: str) -> list[str]:
    """The lower-case words of a text.

    >>> words_of("Soft, 2-pack Scarf!")
    ['soft', '2', 'pack', 'scarf']
    """
    return _WORD.findall(text.lower())


def asked_words(request: str) -> str:
    """The words of a request that may say something about a product, each once.

    >>> asked_words("I need a soft scarf, soft and under $40")
    'soft scarf'
    """
    words = (word for word in words_of(request) if word not in IDLE_WORDS and not word.isdigit())
    return " ".join(dict.fromkeys(words))


class SearchIndex:
    """A read-only BM25 index. Build it with :meth:`of_ids` or :meth:`of_texts`."""

    def __init__(self, engine: bm25s.BM25, words: Mapping[str, int]) -> None:
        def singular(word: str) -> str:
            """A word that no product has, as one of several: nobody stems, but everybody says "towels"."""
            stems = (word.removesuffix(end) + new for end, new in _PLURALS if word.endswith(end))
            return (
                word
                if word in words
                else next((stem for stem in stems if len(stem) > 2 and stem in words), word)
            )

        def rank(query: str) -> tuple[int, ...]:
            # Sorted, because float sums depend on their order and a ranking should not.
            known = sorted(words[word] for word in map(singular, words_of(query)) if word in words)
            return _top(engine.get_scores_from_ids(known)) if known else ()

        self.rank: Callable[[str], tuple[int, ...]] = functools.lru_cache(maxsize=_REMEMBERED)(rank)
        """Positions of at most :data:`TOP` products that match a query, best first."""

    @classmethod
    def of_ids(cls, documents: Sequence[list[int]], words: Mapping[str, int]) -> SearchIndex:
        """Index documents given as numbers of words; ``words`` numbers them from 0 without gaps."""
        engine = keyword_engine()()
        engine.index((list(documents), dict(words)), show_progress=False, create_empty_token=False)
        return cls(engine, words)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> SearchIndex:
        """Index texts."""
        words: dict[str, int] = {}
        documents = [[words.setdefault(word, len(words)) for word in words_of(text)] for text in texts]
        return cls.of_ids(documents, words)


def _top(scores: NDArray[np.float32]) -> tuple[int, ...]:
    """The :data:`TOP` best positive scores, equal ones by position.

    Most scores are 0, on which ``np.partition`` is slow; so the good ones are cut out first.
    """
    best = float(scores.max(initial=0.0))
    if best <= 0.0:
        return ()
    for share in (0.7, 0.45, 0.25):
        mask = scores >= best * share
        if np.count_nonzero(mask) >= TOP:
            break
    else:
        mask = scores > 0
    found = np.flatnonzero(mask)
    values = scores[found]
    if len(values) > 4 * TOP:
        keep = values >= np.partition(values, len(values) - TOP)[len(values) - TOP]
        found, values = found[keep], values[keep]
    return tuple(found[np.argsort(-values, kind="stable")[:TOP]].tolist())
