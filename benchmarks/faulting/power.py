"""A power failure: what was never synced is gone.

The process keeps a journal of its syncs. A file's content is on the disk up to its size at its last fsync; a name is,
if the folder was synced since it was made, renamed or removed. After the process was killed :func:`cut` brings the run's
folder to what a disk may then hold: files are cut to what was synced, or anywhere beyond it, and names that no sync
confirmed are taken back, or not.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any


class Journal:
    """Written by the process under test, beside its run's folder."""

    def __init__(self, out: Path, journal: Path) -> None:
        self.out, self.store = out, journal.with_suffix(".kept")
        self.store.mkdir(exist_ok=True)
        self.file = journal.open("a", buffering=1)
        if out.is_dir():  # the names that are there now have been there for long
            for folder in (out, *(p for p in out.rglob("*") if p.is_dir() and not p.is_symlink())):
                self._folder(folder)
            for file in (p for p in out.rglob("*") if p.is_file() and not p.is_symlink()):
                self._note({"file": file.stat().st_ino, "size": file.stat().st_size})

    def synced(self, number: int) -> None:
        """A file or folder was synced."""
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if path != self.out and self.out not in path.parents:
            return
        if path.is_dir():
            self._folder(path)
        else:
            status = os.fstat(number)
            self._note({"file": status.st_ino, "size": status.st_size})

    def close(self) -> None:
        """Close the journal."""
        self.file.close()

    def _folder(self, path: Path) -> None:
        names: dict[str, Any] = {}
        for entry in os.scandir(path):
            if entry.is_symlink():
                names[entry.name] = os.readlink(entry.path)
                continue
            names[entry.name] = entry.inode()
            if entry.is_file():
                with contextlib.suppress(FileExistsError):  # kept, in case its name is given to another file
                    os.link(entry.path, self.store / str(entry.inode()))
        self._note({"folder": str(path.relative_to(self.out)), "names": names})

    def _note(self, row: dict[str, Any]) -> None:
        self.file.write(json.dumps(row) + "\n")


def cut(out: Path, journal: Path, rng: Random, *, names: bool) -> int:
    """Take back what was not synced; how many bytes and names that were.

    Args:
        out: the run's folder.
        journal: of the process that was killed.
        rng: chooses how much of what was not synced is there all the same.
        names: whether names are taken back too.
    """
    sizes: dict[int, int] = {}
    folders: dict[str, dict[str, Any]] = {}
    for line in journal.read_text().splitlines() if journal.exists() else ():
        row = json.loads(line)
        if "file" in row:
            sizes[row["file"]] = row["size"]
        else:
            folders[row["folder"]] = row["names"]
    taken = 0
    if names and out.is_dir():
        taken += _names(out, out, journal.with_suffix(".kept"), folders)
    for file in sorted(p for p in out.rglob("*") if p.is_file() and not p.is_symlink()):
        status = file.stat()
        safe = sizes.get(status.st_ino, 0)
        if status.st_size > safe:
            keep = rng.choice((safe, rng.randint(safe, status.st_size)))
            taken += status.st_size - keep
            os.truncate(file, keep)
    return taken


def _names(out: Path, folder: Path, store: Path, folders: dict[str, dict[str, Any]]) -> int:
    """Give a folder the names of its last sync: new ones go, files come back to names that others took."""
    synced, taken = folders.get(str(folder.relative_to(out)), {}), 0
    for entry in list(os.scandir(folder)):
        now: Any = os.readlink(entry.path) if entry.is_symlink() else entry.inode()
        if synced.get(entry.name) == now:
            if entry.is_dir(follow_symlinks=False):
                taken += _names(out, Path(entry.path), store, folders)
            continue
        taken += 1
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    for name, before in synced.items():
        path = folder / name
        if os.path.lexists(path):
            continue
        if isinstance(before, str):
            path.symlink_to(before)
        elif (store / str(before)).exists():
            os.link(store / str(before), path)
        else:  # a folder that was removed: its removal may have reached the disk
            continue
        taken += 1
    return taken
