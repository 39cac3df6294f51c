"""The episode log: an append-only file of one JSON line per episode, compressed with zstandard.

Each flush appends one checksummed zstd frame of whole lines. A crash or a full disk therefore costs at
most the last frame: it is dropped when the log is read, and counted, and cut off when the log is opened
to be continued. Damage anywhere else is an error that names the file and the line. ``zstdcat`` reads the
file; a name without ``.zst`` gives plain JSON lines.
"""

from __future__ import annotations

import io
import itertools
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Self

import zstandard

from turnwise.agents.core import Episode
from turnwise.agents.records import Record, env_version, from_line, to_line
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json

_MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 20
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
    """

    def __init__(
        self,
        path: Path | str,
        *,
        policy: str = "",
        env_options: Mapping[str, Json] | None = None,
        flush_every: int = 16,
    ) -> None:
        self.path = Path(path)
        self.policy = policy
        self._env_options = dict(env_options or {})
        self._flush_every = flush_every
        self._lines: list[str] = []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = open(self.path, "ab", buffering=0)  # noqa: SIM115 (closed by close)
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
    ) -> None:
        """Add one episode; in training with its update, its group and each agent's advantages, one per turn."""
        env = env_version(episode.task.env, self._env_options)
        given = {name: tuple(row) for name, row in (advantages or {}).items() if row}
        record = Record(episode, self.policy, env, update, group, given)
        self._lines.append(to_line(record))
        if len(self._lines) >= self._flush_every:
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
            frame = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(frame)
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
            head = file.read(len(_MAGIC))
        start = _MAGIC if self.path.suffix == ".zst" else b"{"
        if not start.startswith(head[: len(start)]):
            self._file.close()
            raise TurnwiseError(f"{self.path} exists and is no episode log.", "Choose another file.")
        end = 0
        for block in _blocks(self.path):
            end = block.end
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
        number, end = 0, 0
        for block in _blocks(self.path):
            end = block.end
            for line in io.BytesIO(block.data):
                number += 1
                yield _record(self.path, line, number)
        if end < self.path.stat().st_size:
            self.dropped = 1
            _logger.warning("%s: the torn end after line %d was left out", self.path, number)


def read_episodes(path: Path | str) -> Iterator[Episode]:
    """The episodes of a log. A torn end is left out with a logged warning (:class:`LogReader` counts it).

    Raises:
        TurnwiseError: the file is missing, or damaged before its end.
    """
    return (record.episode for record in LogReader(path))


def cut_log(path: Path | str, keep: Callable[[Record], bool]) -> int:
    """Cut a log off before the first episode that ``keep`` refuses; a torn end goes too.

    Returns how many episodes are left. A log that is missing stays missing.

    Raises:
        TurnwiseError: the file is damaged before that episode, or cannot be written.
    """
    path = Path(path)
    if not path.exists():
        return 0
    kept, end, head = 0, 0, b""
    for block in _blocks(path):
        lines = block.data.splitlines(keepends=True)
        records = (_record(path, line, kept + i) for i, line in enumerate(lines, 1))
        wanted = sum(1 for _ in itertools.takewhile(keep, records))
        kept += wanted
        if wanted < len(lines):
            head = b"".join(lines[:wanted])
            break
        end = block.end
    if head and path.suffix == ".zst":
        head = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(head)
    try:
        with path.open("r+b") as file:
            file.seek(end)
            file.write(head)
            file.truncate()
    except OSError as error:
        raise _unwritable(path, error, 0) from error
    return kept


def _record(path: Path, line: bytes, number: int) -> Record:
    try:
        return from_line(line)
    except ValueError as error:
        raise _damaged(path, f"line {number}", str(error)) from None


class _Block(NamedTuple):
    """Whole lines, and the offset in the file at which they end."""

    data: bytes
    end: int


def _blocks(path: Path) -> Iterator[_Block]:
    """The intact blocks of a log, up to the end or to what a crash tore."""
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
        file.seek(0)
        zipped = path.suffix == ".zst" or head == _MAGIC
        yield from (_frames(path, file) if zipped else _plain_lines(file))


def _plain_lines(file: IO[bytes]) -> Iterator[_Block]:
    end = 0
    for line in file:
        if line.endswith(b"\n"):
            end += len(line)
            yield _Block(line, end)


def _frames(path: Path, file: IO[bytes]) -> Iterator[_Block]:
    pending, end, lines = b"", 0, 0
    while pending or (pending := file.read(_CHUNK)):
        decoder = zstandard.ZstdDecompressor().decompressobj()
        parts: list[bytes] = []
        size = 0
        try:
            while pending and not decoder.eof:
                parts.append(decoder.decompress(pending))
                size += len(pending)
                pending = b"" if decoder.eof else file.read(_CHUNK)
        except zstandard.ZstdError as error:
            if _intact_frame_after(path, end + 1):
                raise _damaged(path, f"the lines from {lines + 1} on", str(error)) from None
            return
        if not decoder.eof:
            return
        pending = decoder.unused_data
        end += size - len(pending)
        data = b"".join(parts)
        lines += data.count(b"\n")
        yield _Block(data, end)
        pending = pending or file.read(_CHUNK)


def _intact_frame_after(path: Path, start: int) -> bool:
    """Whether a whole frame follows: then what failed before it is damage, not a torn end."""
    data = path.read_bytes()
    while (start := data.find(_MAGIC, start)) >= 0:
        decoder = zstandard.ZstdDecompressor().decompressobj()
        try:
            decoder.decompress(data[start:])
        except zstandard.ZstdError:
            pass
        else:
            if decoder.eof:
                return True
        start += 1
    return False


def _damaged(path: Path, where: str, why: str) -> TurnwiseError:
    return TurnwiseError(
        f"{path} is damaged at {where}: {why}.",
        "Restore the file from a copy, or cut it before that line; a torn last line needs no repair.",
    )


def _unwritable(path: Path, error: OSError, waiting: int) -> TurnwiseError:
    lost = f" {waiting} new episodes are not saved; earlier ones are intact." if waiting else ""
    return TurnwiseError(
        f"Cannot write {path}: {error.strerror or error}.{lost}",
        "Free disk space or choose another directory, then continue with --resume.",
    )
