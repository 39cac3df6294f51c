"""Files as values: a layer is a set of changes to a sandbox's folders, encoded once and never changed.

A snapshot is a stack of layers, so that a hundred forks of one repository share its bytes. The encoding is
ours instead of tar's because Python's ``tarfile`` needs 0.1 ms a file, and because a layer is only ever
unpacked inside a sandbox: nothing that a model named becomes a path on the host.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tarfile
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from turnwise.errors import TurnwiseError

FOLDERS = ("work", "tmp", "shm")
"""The writable folders of a sandbox: its working folder, ``/tmp`` (also ``$HOME``) and ``/dev/shm``."""

EntryKind: TypeAlias = Literal["file", "folder", "link", "fifo", "gone"]

_MTIME = 1_577_836_800 * 10**9  # of files that come from a description: 2020-01-01


class Entry(NamedTuple):
    """One path of a layer. ``path`` begins with one of :data:`FOLDERS`.

    ``segments`` are the (offset, length) of a file's bytes, so that a sparse file stays small; ``target`` is
    where a link leads; a path that is ``gone`` was removed, with everything under it.
    """

    path: str
    kind: EntryKind
    mode: int = 0o644
    mtime: int = _MTIME
    size: int = 0
    segments: tuple[tuple[int, int], ...] = ()
    target: str = ""


class Layer:
    """An immutable set of files, removals included. Make one with :meth:`of` or :meth:`from_folder`.

    >>> layer = Layer.of({"src/a.py": "x = 1\\n"})
    >>> [entry.path for entry in layer.entries], layer.read("src/a.py")
    (['work/src', 'work/src/a.py'], b'x = 1\\n')
    """

    def __init__(self, blob: bytes) -> None:
        self.blob = blob

    @classmethod
    def of(cls, files: Mapping[str, str | bytes], *, executable: Iterable[str] = ()) -> Layer:
        """A layer of these files, by their paths in the working folder."""
        runs = set(executable)
        data = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
        entries: dict[str, tuple[Entry, bytes]] = {}
        for path, content in data.items():
            full = _checked(path)
            for parent in reversed(Path(full).parents):
                if len(parent.parts) > 1:
                    entries.setdefault(str(parent), (Entry(str(parent), "folder", 0o755), b""))
            size = len(content)
            segments = ((0, size),) if size else ()
            mode = 0o755 if path in runs else 0o644
            entries[full] = (Entry(full, "file", mode, size=size, segments=segments), content)
        return cls(encode(entries[path] for path in sorted(entries)))

    @classmethod
    def from_folder(cls, folder: Path, *, leave_out: Iterable[str] = (".git", "__pycache__")) -> Layer:
        """A copy of a folder of this machine as a working folder. Links are copied, not followed."""
        skipped = set(leave_out)
        found: list[tuple[Entry, bytes]] = []
        for here, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name not in skipped)
            for name in sorted([*names, *files]):
                path = Path(here, name)
                entry = _entry_of(path, f"work/{path.relative_to(folder)}")
                if entry is not None and name not in skipped:
                    found.append(entry)
        return cls(encode(sorted(found, key=lambda item: item[0].path)))

    @classmethod
    def from_tar(cls, archive: tarfile.TarFile) -> Layer:
        """Read an archive of one folder, as a working folder. Nothing is unpacked on this machine.

        Hard links become files; devices are left out, and so is what would lie outside of the folder.
        """
        found: dict[str, tuple[Entry, bytes]] = {}
        for member in archive:
            parts = member.name.split("/")[1:]
            if not parts or {"", ".", ".."} & set(parts):
                continue
            name, mode, mtime = "/".join(["work", *parts]), member.mode & 0o777, int(member.mtime) * 10**9
            if member.isdir():
                found[name] = (Entry(name, "folder", mode | 0o700, mtime), b"")
            elif member.issym():
                found[name] = (Entry(name, "link", 0o777, mtime, target=member.linkname), b"")
            elif (file := archive.extractfile(member)) is not None:
                data = file.read()
                segments = ((0, len(data)),) if data else ()
                found[name] = (Entry(name, "file", mode | 0o600, mtime, len(data), segments), data)
        return cls(encode(found[name] for name in sorted(found)))

    @cached_property
    def _decoded(self) -> tuple[tuple[Entry, ...], int]:
        (length,) = struct.unpack_from(">I", self.blob)
        rows = json.loads(self.blob[4 : 4 + length])
        return tuple(_from_json(row) for row in rows), 4 + length

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Contents of the layer, parents before children."""
        return self._decoded[0]

    @cached_property
    def contents(self) -> Mapping[str, bytes]:
        """The stored bytes of each file by its path (of a sparse file: its segments, joined)."""
        entries, offset = self._decoded
        found: dict[str, bytes] = {}
        for entry in entries:
            stored = sum(length for _, length in entry.segments)
            if entry.kind == "file":
                found[entry.path] = self.blob[offset : offset + stored]
            offset += stored
        return found

    def read(self, path: str) -> bytes:
        """The bytes of a file of the working folder; KeyError where the layer does not have it."""
        return self.contents[_checked(path)]

    def __len__(self) -> int:
        return len(self.blob)


def digest_of(layers: Iterable[Layer]) -> str:
    """A hash of the files that a stack of layers amounts to: names, modes, contents; not times."""
    state: dict[str, tuple[Entry, bytes]] = {}
    for layer in layers:
        for entry in layer.entries:
            if entry.kind != "folder" or (entry.path in state and state[entry.path][0].kind != "folder"):
                for path in _under(state, entry.path):
                    del state[path]
            if entry.kind != "gone":
                state[entry.path] = (entry, layer.contents.get(entry.path, b""))
    digest = hashlib.sha256()
    for path in sorted(state):
        entry, content = state[path]
        row = [path, entry.kind, entry.mode, entry.size, entry.segments, entry.target]
        digest.update(json.dumps(row).encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()


def encode(entries: Iterable[tuple[Entry, bytes]]) -> bytes:
    """Entries with the bytes of their segments as one blob: length, index, bytes."""
    rows: list[Any] = []
    data: list[bytes] = []
    for entry, content in entries:
        rows.append(list(entry))
        data.append(content)
    index = json.dumps(rows, separators=(",", ":")).encode()
    return b"".join([struct.pack(">I", len(index)), index, *data])


def _under(state: Mapping[str, object], path: str) -> list[str]:
    return [other for other in state if other == path or other.startswith(path + "/")]


def _from_json(row: list[Any]) -> Entry:
    path, kind, mode, mtime, size, segments, target = row
    return Entry(path, kind, mode, mtime, size, tuple((start, length) for start, length in segments), target)


def _checked(path: str) -> str:
    """The entry's path of a file of the working folder."""
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or {"", ".", ".."} & set(parts):
        raise TurnwiseError(
            f"A layer cannot hold {path[:80]!r}.", "Name files relative to the working folder, without '..'."
        )
    return f"work/{path}"


def _entry_of(path: Path, name: str) -> tuple[Entry, bytes] | None:
    about = path.lstat()
    mode = stat.S_IMODE(about.st_mode)
    if stat.S_ISLNK(about.st_mode):
        return Entry(name, "link", 0o777, about.st_mtime_ns, target=os.readlink(path)), b""
    if stat.S_ISDIR(about.st_mode):
        return Entry(name, "folder", mode | 0o700, about.st_mtime_ns), b""
    if not stat.S_ISREG(about.st_mode):
        return None
    content = path.read_bytes()
    segments = ((0, len(content)),) if content else ()
    return Entry(name, "file", mode | 0o600, about.st_mtime_ns, len(content), segments), content
