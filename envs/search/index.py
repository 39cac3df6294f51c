"""BM25 over many passages, by the library bm25s, in arrays that are mapped and shared by processes.

Lucene's BM25 (k₁ = 1.5, b = 0.75), no stemming, without English stop words; a title counts three times.
Equal scores are ordered by position. The vocabulary is a sorted array of bytes, looked up by bisection, so
that a process that opens an index of a million passages reads only what it asks for.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnwise.envs.keywords import keyword_engine
from turnwise.envs.search.corpus import Facets, Passage

if TYPE_CHECKING:
    import bm25s

TITLE_WEIGHT = 3
_LONGEST = 48  # bytes of a word
_LONGEST_QUERY = 64  # words
_WORD = re.compile(r"[^\W_]+")
_FACETS, _ARRAYS = "facets.json", ("words", "numbers", "kind_P", "date_P")


class Hit(NamedTuple):
    """A passage that was found, and how well it matches."""

    position: int
    score: float


@functools.cache
def stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


def words_of(text: str) -> list[str]:
    """The lower-case words of a text that are searched for.

    >>> words_of("The Mills of Velmora, 1931")
    ['mills', 'velmora', '1931']
    """
    drop = stop_words()
    return [word for word in _WORD.findall(text.lower()) if word not in drop]


class Index:
    """A read-only index. Build it with :func:`build_index`, map a saved one with :meth:`load`."""

    def __init__(
        self, engine: bm25s.BM25, words: NDArray[np.bytes_], numbers: NDArray[np.int32], facets: Facets
    ) -> None:
        self._engine, self._words, self._numbers, self.facets = engine, words, numbers, facets

    def __len__(self) -> int:
        return len(self.facets.kind_P)

    def search(self, query: str, k: int) -> list[Hit]:
        """The ``k`` best passages that share a word with the query, best first."""
        # Sorted, because float sums depend on their order and a ranking should not.
        known = sorted({n for w in words_of(query)[:_LONGEST_QUERY] if (n := self._number(w)) is not None})
        if not known:
            return []
        return best(self._engine.get_scores_from_ids(known), k)

    def containing(self, words: Iterable[str]) -> NDArray[np.int64]:
        """All passages that have every one of these words, in order of position."""
        found: NDArray[np.int64] | None = None
        for word in dict.fromkeys(words):
            number = self._number(word)
            own = (
                np.sort(self._postings(number)).astype(np.int64)
                if number is not None
                else np.empty(0, np.int64)
            )
            found = own if found is None else np.intersect1d(found, own, assume_unique=True)
        return np.arange(len(self)) if found is None else found

    def save(self, folder: Path) -> None:
        """Write the index, one array per file."""
        self._engine.save(folder, show_progress=False)
        for file in folder.glob("vocab.index.json"):
            file.unlink()
        facets = self.facets
        for name, array in zip(
            _ARRAYS, (self._words, self._numbers, facets.kind_P, facets.date_P), strict=True
        ):
            np.save(folder / f"{name}.npy", array)
        (folder / _FACETS).write_text(json.dumps(list(facets.kinds)), "utf-8")

    @staticmethod
    def load(folder: Path) -> Index:
        """Map a saved index."""
        engine = keyword_engine().load(folder, mmap=True, load_vocab=False, show_progress=False)
        words, numbers, kind_P, date_P = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS)
        kinds: list[str] = json.loads((folder / _FACETS).read_text("utf-8"))
        return Index(engine, words, numbers, Facets(kinds, kind_P, date_P))

    def _number(self, word: str) -> int | None:
        key = word.encode()[:_LONGEST]
        at = int(np.searchsorted(self._words, key))
        return int(self._numbers[at]) if at < len(self._words) and self._words[at] == key else None

    def _postings(self, number: int) -> NDArray[np.int32]:
        scores = self._engine.scores
        return scores["indices"][scores["indptr"][number] : scores["indptr"][number + 1]]


def build_index(passages: Iterable[Passage]) -> Index:
    """Index passages in the order in which they come."""
    numbers: dict[str, int] = {}
    documents: list[list[int]] = []
    kinds: dict[str, int] = {}
    kind_P: list[int] = []
    date_P: list[int] = []
    for passage in passages:
        words = words_of(passage.title) * TITLE_WEIGHT + words_of(passage.text)
        documents.append([numbers.setdefault(word, len(numbers)) for word in words])
        kind_P.append(min(kinds.setdefault(passage.kind, len(kinds)), 255))
        date_P.append(passage.date if abs(passage.date) < 2**15 else 0)
    if not numbers:  # bm25s cannot index nothing
        numbers[""] = 0
        documents = [[0] for _ in documents] or [[0]]
    engine = keyword_engine()()
    engine.index((documents, numbers), show_progress=False, create_empty_token=False)
    words, order = _vocabulary(numbers)
    return Index(
        engine,
        words,
        order,
        Facets(list(kinds)[:256], np.array(kind_P, np.uint8), np.array(date_P, np.int16)),
    )


def best(scores: NDArray[np.float32], k: int) -> list[Hit]:
    """The ``k`` best positive scores, equal ones by position.

    >>> best(np.array([0.5, 2.0, 0.0, 0.5], np.float32), 2)
    [Hit(position=1, score=2.0), Hit(position=0, score=0.5)]
    """
    found = np.flatnonzero(scores > 0)
    values = scores[found]
    if len(values) > k:
        keep = values >= np.partition(values, len(values) - k)[len(values) - k]
        found, values = found[keep], values[keep]
    order = np.argsort(-values, kind="stable")[:k]
    return [Hit(int(found[i]), float(values[i])) for i in order]


def _vocabulary(numbers: dict[str, int]) -> tuple[NDArray[np.bytes_], NDArray[np.int32]]:
    """The words sorted, and the number of each."""
    keys: Sequence[bytes] = [word.encode()[:_LONGEST] for word in numbers]
    words = np.array(keys, dtype=f"S{max(map(len, keys)) or 1}")
    order = np.argsort(words, kind="stable").astype(np.int32)
    return words[order], order
