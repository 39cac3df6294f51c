"""The episode log: an append-only file of one JSON line per episode, compressed with zstandard.

Each flush appends one checksummed zstd frame of whole lines. A crash or a full disk therefore costs at
most the last frame: it is dropped when the log is read, and counted, and cut off when the log is opened
to be continued. Damage anywhere else is an error that names the file and the line, and that ``turnwise
repair`` cuts out. ``zstdcat`` reads the file; a name without ``.zst`` gives plain JSON lines.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Self

from turnwise.agents.core import Episode
from turnwise.agents.log.forms import MOST_LINE
from turnwise.agents.log.records import Record, env_version, from_line, to_line
from turnwise.durable import sync, write_whole, written_whole
from turnwise.errors import TurnwiseError
from turnwise.frames import FULL_FRAME, MAGIC, compress, frames_of, pieces
from turnwise.secrets import redact, redact_options
from turnwise.tasks.core import Json
from turnwise.texts import lines_with_ends

_logger = logging.getLogger(__name__)


class EpisodeLog:
    """Appends episodes to a file; what was there before stays as it is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, EpisodeLog(f"{folder}/episodes.jsonl.zst") as log:
    ...     log.path.exists()
    True

    Args:
        path: ``….jsonl.zst``, or ``….jsonl`` for plain lines. Made where it is missing.
        policy: who plays, noted in each line.
        env_options: what the environments were made with, needed to replay them.
        flush_every: episodes per frame; a crash loses at most that many.
        flush_seconds: an episode that comes this long after the last frame makes a new one.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        policy: str = "",
        env_options: Mapping[str, Json] | None = None,
        flush_every: int = 16,
        flush_seconds: float = math.inf,
    ) -> None:
        self.path = Path(path)
        self.policy = redact(policy)
        self._env_options = redact_options(dict(env_options or {}))
        self._flush_every = flush_every
        self._flush_seconds = flush_seconds
        self._flushed = time.monotonic()
        self._lines: list[str] = []
        self._size = 0  # of these
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = open(self.path, "ab", buffering=0)  # noqa: SIM115 (closed by close)
            sync(self.path.parent)
        except OSError as error:
            raise _unwritable(self.path, error, 0) from error
        self._cut_torn_end()

    def append(
        self,
        episode: Episode,
        *,
        update: int | None = None,
        group: int | None = None,
        advantages: Mapping[str, Sequence[float]] | None = None,
        entropies: Mapping[str, Sequence[Sequence[float]]] | None = None,
        suite: str = "",
    ) -> None:
        """Add one episode; in training with its update, group and suite, and each agent's advantages, one per turn.

        ``entropies`` are those of each agent's sampled tokens, turn by turn, in nats, where they were measured.
        """
        env = env_version(episode.task.env, self._env_options)
        given = {name: tuple(row) for name, row in (advantages or {}).items() if row}
        spread = {name: tuple(map(tuple, turns)) for name, turns in (entropies or {}).items()}
        record = Record(episode, self.policy, env, update, group, given, suite=suite, entropies=spread)
        line = to_line(record)
        if len(line) >= MOST_LINE:
            raise TurnwiseError(
                f"An episode of {episode.task.env} is {len(line) >> 20} MiB long in the log, and {MOST_LINE >> 20} are the most "
                "that are read again.",
                "Shorten it: fewer turns, shorter observations, smaller details. Episodes that finished before it are kept.",
            )
        self._lines.append(line)
        self._size += len(line)
        waited = time.monotonic() - self._flushed
        full = len(self._lines) >= self._flush_every or self._size >= FULL_FRAME
        if full or waited >= self._flush_seconds:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting to the disk.

        Raises:
            TurnwiseError: the disk is full or the file cannot be written. Earlier lines stay intact, and
                the waiting ones stay waiting.
        """
        if not self._lines:
            return
        frame = "".join(line + "\n" for line in self._lines).encode()
        if self.path.suffix == ".zst":
            frame = compress(frame)
        size = os.fstat(self._file.fileno()).st_size
        try:
            view = memoryview(frame)
            while view:  # unbuffered: a write may take only a part
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(size)
            raise _unwritable(self.path, error, len(self._lines)) from error
        self._lines.clear()
        self._size = 0
        self._flushed = time.monotonic()

    def delete_first(self, old: Callable[[Record], bool]) -> int:
        """Delete the episodes from the beginning on up to the first that is not ``old``; how many these were.

        The file is written aside and renamed, so that a crash leaves the old one or the new one.

        Raises:
            TurnwiseError: the log is damaged among them, or cannot be written; it is as it was then.
        """
        self.flush()
        count, rest = _first_kept(self.path, old)
        if not count:
            return 0
        try:
            with self.path.open("rb") as whole, written_whole(self.path) as aside:
                aside.write(rest.head)
                whole.seek(rest.start)
                shutil.copyfileobj(whole, aside)
            self._file.close()
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise _unwritable(self.path, error, 0) from error
        return count

    def close(self) -> None:
        """Flush and close."""
        if not self._file.closed:
            try:
                self.flush()
            finally:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut_torn_end(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        with self.path.open("rb") as file:
            head = file.read(len(MAGIC))
        start = MAGIC if self.path.suffix == ".zst" else b"{"
        if not start.startswith(head[: len(start)]):
            self._file.close()
            raise TurnwiseError(f"{self.path} exists and is no episode log.", "Choose another file.")
        end = 0
        try:
            for block in _blocks(self.path):
                end = end if block.torn else block.end
        except TurnwiseError:
            self._file.close()
            raise
        if end < size:
            _logger.warning("%s: %d bytes of a torn last write were cut off", self.path, size - end)
            self._file.truncate(end)


class LogReader:
    """The records of a log, one at a time; ``dropped`` then says how many torn ends were left out.

    Raises:
        TurnwiseError: on iteration, where the file is missing, or damaged before its end.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.dropped = 0

    def __iter__(self) -> Iterator[Record]:
        self.dropped = 0
        if not self.path.is_file():
            raise TurnwiseError(f"There is no episode log {self.path}.", "Check the path.")
        number = 0
        for block in _blocks(self.path):
            if block.torn:
                self.dropped = 1
                _logger.warning("%s: the torn end after line %d was left out", self.path, number)
            for line in lines_with_ends(block.lines):
                number += 1
                yield _record(self.path, line, number)


def read_episodes(path: Path | str) -> Iterator[Episode]:
    """The episodes of a log. A torn end is left out with a logged warning (:class:`LogReader` counts it).

    Raises:
        TurnwiseError: the file is missing, or damaged before its end.
    """
    return (record.episode for record in LogReader(path))


class LogPlace(NamedTuple):
    """Place of a record in a log: the offset at which its block begins, and its line in there, from 0."""

    start: int
    line: int


def read_record(path: Path | str, place: LogPlace) -> Record:
    """One record of a log, of which no more than its block is read.

    Raises:
        TurnwiseError: there is none at that place (the log was written anew), or it is damaged.
    """
    path = Path(path)
    try:
        piece = next(pieces(path, place.start))
        line = next(itertools.islice(lines_with_ends(piece.lines or b""), place.line, None))
    except (OSError, StopIteration):
        raise TurnwiseError(
            f"{path} has no episode at byte {place.start}, line {place.line + 1} any more.",
            "The log was written anew; look for the episode again.",
        ) from None
    return _record(path, line, place.line + 1)


def lines_after(path: Path | str, start: int) -> Iterator[tuple[int, int, bytes]]:
    """The blocks of a log that begin at ``start`` or later: where each begins and ends, and its whole lines.

    A torn end is left out: it may be a block that is being written.

    Raises:
        TurnwiseError: the file is damaged before its end.
    """
    at = start
    for block in _blocks(Path(path), start):
        if not block.torn:
            yield at, block.end, block.lines
            at = block.end


def cut_log(path: Path | str, keep: Callable[[Record], bool]) -> int:
    """Cut a log off before the first episode that ``keep`` refuses; a torn end goes too.

    Returns how many episodes are left. A log that is missing stays missing.

    Raises:
        TurnwiseError: the file is damaged before that episode, or cannot be written.
    """
    path = Path(path)
    if not path.exists():
        return 0
    split = _split(path, keep)
    try:
        with path.open("r+b") as file:
            file.seek(split.start)
            file.write(_packed(path, split.before))
            file.truncate()
    except OSError as error:
        raise _unwritable(path, error, 0) from error
    return split.episodes


class _Split(NamedTuple):
    """A log at the first episode that is not of those before it, within the block from ``start`` to ``end``.

    so many ``episodes`` come before it; ``before`` and ``after`` are the lines of its block.
    """

    episodes: int
    start: int
    before: bytes
    after: bytes
    end: int


def _split(path: Path, leads: Callable[[Record], bool]) -> _Split:
    """Split a log after its leading episodes, all those for which ``leads`` holds; a torn end is in neither part."""
    count, end = 0, 0
    for block in _blocks(path):
        if block.torn:
            break
        lines = list(lines_with_ends(block.lines))
        records = (_record(path, line, count + i) for i, line in enumerate(lines, 1))
        leading = sum(1 for _ in itertools.takewhile(leads, records))
        count += leading
        if leading < len(lines):
            return _Split(count, end, b"".join(lines[:leading]), b"".join(lines[leading:]), block.end)
        end = block.end
    return _Split(count, end, b"", b"", end)


def _packed(path: Path, lines: bytes) -> bytes:
    return compress(lines) if lines and path.suffix == ".zst" else lines


class _Rest(NamedTuple):
    """The remainder after the episodes that are deleted: lines of a block that is cut in two, and the file from ``start``
    on."""

    head: bytes
    start: int


def _first_kept(path: Path, old: Callable[[Record], bool]) -> tuple[int, _Rest]:
    """Count the episodes before the first that is not old, and return what follows them."""
    split = _split(path, old)
    if not split.before:
        return split.episodes, _Rest(b"", split.start)
    return split.episodes, _Rest(_packed(path, split.after), split.end)


def keep_records(path: Path, keep: Callable[[Record], bool]) -> list[Record]:
    """Write a log anew without the records that ``keep`` refuses, and return those that are left.

    A log that loses nothing is not touched.

    Raises:
        TurnwiseError: the file is damaged before its end, or cannot be written.
    """
    records = list(LogReader(path))
    left = [record for record in records if keep(record)]
    if len(left) < len(records):
        lines = (f"{to_line(record)}\n".encode() for record in left)
        try:
            write_whole(path, b"".join(frames_of(lines) if path.suffix == ".zst" else lines))
        except OSError as error:
            raise _unwritable(path, error, 0) from error
    return left


def _record(path: Path, line: bytes, number: int) -> Record:
    try:
        return from_line(line)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"line {number}", str(error)) from None


class _Block(NamedTuple):
    """Whole lines, and the offset in the file at which they end; or the torn end of the file, without lines."""

    lines: bytes
    end: int
    torn: bool = False


def _blocks(path: Path, start: int = 0) -> Iterator[_Block]:
    """The intact blocks of a log from an offset on, and in the end what a crash tore."""
    lines = 0
    for piece in pieces(path, start):
        if piece.lines is not None:
            lines += piece.lines.count(b"\n")
            yield _Block(piece.lines, piece.end)
        elif piece.last:
            yield _Block(b"", piece.end, torn=True)
        else:
            why = f"{piece.end - piece.start} bytes cannot be read{piece.why and f', {piece.why}'}"
            raise _damaged(path, f"the lines from {lines + 1} on", why)


def _damaged(path: Path, where: str, why: str) -> TurnwiseError:
    return TurnwiseError(
        f"{path} is damaged at {where}: {why}.",
        f"`turnwise repair {path}` cuts out what is damaged and keeps it aside; the rest stays.",
    )


def _unwritable(path: Path, error: OSError, waiting: int) -> TurnwiseError:
    lost = f" {waiting} new episodes are not saved; earlier ones are intact." if waiting else ""
    return TurnwiseError(
        f"Cannot write {path}: {error.strerror or error}.{lost}",
        "Free disk space or choose another directory, then continue with --resume.",
    )
