"""Libraries that an agent searches: passages with their indexes, in memory, on disk, or behind a server."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from turnwise.cache_folder import cache_folder
from turnwise.envs.search.cache import cached, made_by
from turnwise.envs.search.corpus import Corpus, FileCorpus, Passage, line_offsets, read_line, write_jsonl
from turnwise.envs.search.embed import Embedder, VectorIndex, embedder_named
from turnwise.envs.search.encyclopedia import Pages
from turnwise.envs.search.graph import WorldGraph, WorldSpec
from turnwise.envs.search.index import Hit, Index, build_index, words_of
from turnwise.envs.search.schema import schema
from turnwise.errors import EnvError
from turnwise.tasks.core import digest
from turnwise.tools.core import ToolError

IN_MEMORY = 3000
"""Worlds of at most so many passages are made anew by each process; larger ones are made once, on disk."""

_SAME_TITLE = 50
_GRAPHS, _LIBRARIES = 64, 64
_INDEXER = "turnwise.envs.search.index"
_MAKERS = (
    _INDEXER,
    *(f"turnwise.envs.search.{name}" for name in ("vocabulary", "schema", "graph", "prose", "encyclopedia")),
)


class Library(Protocol):
    """The interface of a searchable collection of passages, each of which has a position."""

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """The best passages by keywords (or however a server ranks)."""
        ...

    def semantic(self, query: str, k: int, embedder: str) -> Sequence[Hit]:
        """The best passages by the meaning of the query."""
        ...

    def passage(self, position: int) -> Passage | None:
        """A passage; None if there is none at this position."""
        ...

    def titled(self, title: str) -> int | None:
        """A passage of this title."""
        ...

    def select(self, words: str, kind: str, since: int, until: int) -> NDArray[np.int64]:
        """All passages that have every word, are of this kind ("": any), and dated in these years (0: open)."""
        ...


class LocalLibrary:
    """Passages and their indexes in this process, or mapped from files. ``key`` names the content."""

    def __init__(self, key: str, corpus: Corpus, index: Index) -> None:
        self.key, self.corpus, self.index = key, corpus, index
        self._vectors: dict[str, VectorIndex] = {}
        self._lock = threading.Lock()
        self._search = functools.lru_cache(maxsize=4096)(lambda query, k: tuple(index.search(query, k)))

    def __repr__(self) -> str:
        return f"LocalLibrary({self.key})"

    def __len__(self) -> int:
        return len(self.corpus)

    def search(self, query: str, k: int) -> Sequence[Hit]:
        return self._search(query, k)

    def semantic(self, query: str, k: int, embedder: str) -> Sequence[Hit]:
        return self.vectors(embedder).search(query, k)

    def passage(self, position: int) -> Passage | None:
        return self.corpus[position] if 0 <= position < len(self.corpus) else None

    def titled(self, title: str) -> int | None:
        wanted = _folded(title)
        hits = self.search(title, _SAME_TITLE)
        return next(
            (hit.position for hit in hits if _folded(self.corpus[hit.position].title) == wanted), None
        )

    def select(self, words: str, kind: str, since: int, until: int) -> NDArray[np.int64]:
        found = self.index.containing(words_of(words))
        facets = self.index.facets
        if kind:
            found = found[facets.kind_P[found] == _kind_named(kind, facets.kinds)]
        if since or until:
            date = facets.date_P[found]
            found = found[(date >= since) & (date <= (until or 2**15 - 1)) & (date != 0)]
        return found

    def vectors(self, name: str) -> VectorIndex:
        """The vectors of all passages, made once and kept on disk."""
        with self._lock:
            if name not in self._vectors:
                model = embedder_named(name)
                texts = (f"{p.title}. {p.text}" for p in (self.corpus[i] for i in range(len(self.corpus))))
                self._vectors[name] = vectors_of(self.key, model, texts, len(self.corpus))
        return self._vectors[name]


def vectors_of(key: str, model: Embedder, texts: Iterable[str], count: int) -> VectorIndex:
    """The vectors of texts whose content is named by ``key``."""
    folder = cached(
        f"search/{key}-{model.name}", lambda aside: VectorIndex.build(model, texts, count).save(aside)
    )
    return VectorIndex.load(model, folder)


# --- generated worlds ------------------------------------------------------------------------------


@functools.lru_cache(maxsize=_GRAPHS)
def world_pages(spec: WorldSpec) -> Pages:
    """The graph of a world and its pages."""
    return Pages(WorldGraph(spec))


@functools.lru_cache(maxsize=_LIBRARIES)
def world_library(spec: WorldSpec) -> LocalLibrary:
    """The passages of a generated world."""
    name = f"world-{spec.key}-{made_by(*_MAKERS)}"
    if spec.passages <= IN_MEMORY:
        return memory_library(name, list(world_pages(spec)))
    folder = cached(f"search/{name}", lambda aside: _write(aside, world_pages(spec)))
    path = folder / "passages.jsonl"
    return LocalLibrary(
        folder.name, FileCorpus(path, np.load(folder / "offsets.npy", mmap_mode="r")), Index.load(folder)
    )


def memory_library(key: str, passages: Sequence[Passage]) -> LocalLibrary:
    """A library of few passages."""
    return LocalLibrary(key, passages, build_index(passages))


def _write(folder: Path, passages: Iterable[Passage]) -> None:
    path = folder / "passages.jsonl"
    build_index(write_jsonl(path, passages)).save(folder)
    np.save(folder / "offsets.npy", line_offsets(path))


# --- files -----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=_LIBRARIES)
def file_library(path: str, sha256: str = "") -> LocalLibrary:
    """The passages of a JSONL file, which stays where it is; its index is made once and kept.

    Raises:
        EnvError: there is no such file, it is not the one meant, or a line of it is no passage.
    """
    file = Path(path)
    found = fingerprint(file)
    if sha256 and found != sha256:
        raise EnvError(
            f"{path} is not the corpus that is meant: its hash is {found}, not {sha256}.",
            "Use the same file.",
        )
    folder = cached(f"search/file-{found}-{made_by(_INDEXER)}", lambda aside: _index_file(aside, file))
    offsets = np.load(folder / "offsets.npy", mmap_mode="r")
    return LocalLibrary(folder.name, FileCorpus(file, offsets), Index.load(folder))


def fingerprint(file: Path) -> str:
    """A hash of a file's content, remembered until the file changes.

    Raises:
        EnvError: there is no such file.
    """
    import hashlib

    try:
        stat = file.stat()
    except OSError as error:
        raise EnvError(f"The file {file} cannot be read: {error.strerror}.", "Check the path.") from None
    known = digest(str(file.resolve()), stat.st_size, stat.st_mtime_ns)
    note = cache_folder() / "search" / f"hash-{known}"
    if note.is_file():
        return note.read_text("utf-8")
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()[:32]
    note.parent.mkdir(parents=True, exist_ok=True)
    aside = note.with_suffix(f".{threading.get_ident()}")
    aside.write_text(found, "utf-8")
    aside.replace(note)
    return found


def _index_file(folder: Path, file: Path) -> None:
    def passages() -> Iterable[Passage]:
        with file.open("rb") as lines:
            for position, line in enumerate(lines):
                yield read_line(line, file, position)

    build_index(passages()).save(folder)
    np.save(folder / "offsets.npy", line_offsets(file))


_SPACES = re.compile(r"\s+")


def _kind_named(kind: str, kinds: Sequence[str]) -> int:
    """The number of the kind that is meant: by its name, or by what questions call one or many of it.

    Raises:
        ToolError: there is none; the text lists those that there are.
    """
    called = {name: one.name for one in schema().kinds for name in (one.one, one.many)}
    folded = [name.casefold() for name in kinds]
    said = kind.strip().casefold()
    for wanted in filter(None, (said, called.get(said), said.removesuffix("s"))):
        if wanted in folded:
            return [*kinds].index(kind) if kind in kinds else folded.index(wanted)
    raise ToolError(f"There is no kind {kind[:40]!r}. Kinds: {', '.join(filter(None, kinds))}.")


def _folded(title: str) -> str:
    return _SPACES.sub(" ", title).strip().casefold()


MakeLibrary = Callable[[], Library]
