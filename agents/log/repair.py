"""Cut damage out of episode logs and other files of JSON lines, and say exactly what was cut.

What cannot be read goes into NAME.damaged beside the file, so that nothing is thrown away; everything else
stays as it was, byte for byte, up to frames in which a single line is damaged: those are compressed anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from filelock import FileLock, Timeout

from turnwise.agents.log.records import from_line
from turnwise.durable import LOCK, sync
from turnwise.errors import TurnwiseError
from turnwise.frames import Piece, compress, pieces
from turnwise.tasks.core import Json
from turnwise.texts import lines_with_ends

_SUFFIXES = (".jsonl", ".jsonl.zst")


class Cut(NamedTuple):
    """A cut: how many bytes, of the piece at which byte of the file as it was, after which line, why."""

    bytes: int
    at: int
    after: int  # good lines before it
    why: str

    def __str__(self) -> str:
        return f"after line {self.after}, {self.bytes} bytes (at byte {self.at}): {self.why}"


class _Sorted(NamedTuple):
    good: list[bytes]
    bad: list[bytes]
    cuts: list[Cut]


class Repaired(NamedTuple):
    """A file, what was cut out of it, how many lines are left, and where the cut bytes are."""

    path: Path
    cuts: tuple[Cut, ...]
    kept: int
    aside: Path

    def __str__(self) -> str:
        if not self.cuts:
            return f"{self.path}: nothing is damaged, {self.kept} lines."
        return "\n".join(
            [f"{self.path}: {self.kept} lines are whole; damaged:", *(f"  {c}" for c in self.cuts)]
        )

    def to_json(self) -> dict[str, Json]:
        """One JSON object."""
        cuts = [cut._asdict() for cut in self.cuts]
        return {"file": str(self.path), "cuts": cuts, "kept": self.kept, "aside": str(self.aside)}


def repair(path: Path | str, *, dry_run: bool = False) -> list[Repaired]:
    """Cut the damage out of a file, or out of each file of JSON lines in a folder (an evaluation's, a run's).

    With ``dry_run`` nothing is written.

    Raises:
        TurnwiseError: there is no such file, another process writes there, or the disk is full.
    """
    path = Path(path)
    files = [path] if path.is_file() else _inside(path)
    with _alone(path.parent if path.is_file() else path):
        return [_repair_file(file, dry_run) for file in files]


def _inside(folder: Path) -> list[Path]:
    found = sorted(file for file in folder.glob("*.jsonl*") if file.name.endswith(_SUFFIXES))
    if not found:
        raise TurnwiseError(
            f"There is nothing to repair in {folder}.",
            "Give an episode log, the folder of an evaluation (eval --out) or of a run.",
        )
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else writes in this folder; folders that no process ever locked are nobody's."""
    lock = folder / LOCK
    if not lock.exists():
        yield
        return
    held = FileLock(lock)
    try:
        held.acquire(timeout=0)
    except Timeout:
        raise TurnwiseError(
            f"Another process writes in {folder}.", "Wait for it, or stop it, then repair."
        ) from None
    try:
        yield
    finally:
        held.release()


def _repair_file(path: Path, dry_run: bool) -> Repaired:
    check = _check_for(path)
    cuts: list[Cut] = []
    kept = 0
    for piece in pieces(path):
        found = _sorted(piece, kept, check)
        kept += len(found.good)
        cuts += found.cuts
    aside = path.with_name(f"{path.name}.damaged")
    done = Repaired(path, tuple(cuts), kept, aside)
    if cuts and not dry_run:
        try:
            _rewrite(path, aside, check)
        except OSError as error:
            raise TurnwiseError(
                f"Cannot repair {path}: {error.strerror or error}. It is as it was.",
                "Free disk space and try again.",
            ) from error
    return done


def _rewrite(path: Path, aside: Path, check: Callable[[bytes], None]) -> None:
    new = path.with_name(f".{path.name}.{os.getpid()}")
    zipped = path.suffix == ".zst"
    try:
        with path.open("rb") as old, new.open("wb") as whole, aside.open("ab") as damaged:
            for piece in pieces(path):
                good, bad, cuts = _sorted(piece, 0, check)
                if not cuts:
                    whole.write(_read(old, piece))
                elif piece.lines is None:
                    damaged.write(_read(old, piece))
                else:
                    damaged.writelines(bad)
                    whole.write(compress(b"".join(good)) if zipped and good else b"".join(good))
            for file in (damaged, whole):
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
        sync(path.parent)
    finally:
        new.unlink(missing_ok=True)


def _read(file: IO[bytes], piece: Piece) -> bytes:
    file.seek(piece.start)
    return file.read(piece.end - piece.start)


def _sorted(piece: Piece, before: int, check: Callable[[bytes], None]) -> _Sorted:
    """A piece's good lines, its bad ones, and what must be cut; ``before`` good lines precede it."""
    if piece.lines is None:
        why = "the torn end of a write" if piece.last else piece.why or "they cannot be read"
        return _Sorted([], [], [Cut(piece.end - piece.start, piece.start, before, why)])
    found = _Sorted([], [], [])
    for line in lines_with_ends(piece.lines):
        try:
            check(line)
            found.good.append(line)
        except (ValueError, RecursionError) as error:
            found.bad.append(line)
            found.cuts.append(Cut(len(line), piece.start, before + len(found.good), f"a line: {error}"))
    return found


def _check_for(path: Path) -> Callable[[bytes], None]:
    """Episodes are checked down to their hashes; other lines must be JSON objects."""
    for piece in pieces(path):
        for line in lines_with_ends(piece.lines or b""):
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(data, dict):
                return _is_episode if {"format", "task_id", "agents"} <= data.keys() else _is_object
    return _is_episode if path.suffix == ".zst" else _is_object


def _is_episode(line: bytes) -> None:
    from_line(line)


def _is_object(line: bytes) -> None:
    if not isinstance(json.loads(line), dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 (what every check of a line raises)
