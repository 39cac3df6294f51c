"""The domain of a folder of files."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from turnwise.envs.toolworld.database import Database, frozen
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.files import taubench
from turnwise.envs.toolworld.files.actions import act_of
from turnwise.errors import EnvError

_FILES = ("db.json", "policy.md", "tools.json", "tasks.json", "slots.json")


def folder_of(name: str) -> str:
    """The folder of a domain from files: ``files:PATH``, or ``code:PATH`` whose tools are run; else ""."""
    kind, _, folder = name.partition(":")
    return folder if kind in ("files", "code") else ""


def load_domain(name: str) -> Domain:
    """The domain of a folder (``files:PATH`` or ``code:PATH``).

    Raises:
        EnvError: a file is missing or cannot be read, or its tools are code that was not allowed.
    """
    folder = folder_of(name)
    original = taubench.is_original(folder)
    if original and not name.startswith("code:"):
        raise EnvError(
            f"The tools of {folder} are Python code.",
            "Read them, then set the knob `code: true` to run them here.",
        )
    slots = read_json(folder, "slots.json", optional=True) or {}
    tables = _tables(folder, original)
    base = Database.of(
        {table: {key: frozen(row) for key, row in rows.items()} for table, rows in tables.items()}
    )
    if original:
        acts = taubench.acts_of(folder, fingerprint(folder))
    else:
        acts = tuple(act_of(folder, entry, set(tables)) for entry in read_json(folder, "tools.json"))
    return Domain(
        name=name,
        policy=_text(folder, "wiki.md" if original else "policy.md"),
        build=lambda rng, size: base,
        acts=acts,
        slots={slot: tuple(words) for slot, words in slots.items()},
    )


def _tables(folder: str, original: bool) -> dict[str, dict[str, Any]]:
    if original:
        names = sorted(path.name for path in (Path(folder) / "data").glob("*.json"))
        tables = {name.removesuffix(".json"): read_json(folder, f"data/{name}") for name in names}
    else:
        tables = read_json(folder, "db.json")
    if not isinstance(tables, dict) or not all(isinstance(rows, dict) for rows in tables.values()):
        raise EnvError(f"{folder} holds no database.", "It is an object {table: {key: row}}.")
    return tables


def fingerprint(folder: str) -> str:
    """A hash of the folder's files, which a task carries."""
    original = taubench.is_original(folder)
    paths = taubench.source_files(folder) if original else [Path(folder) / name for name in _FILES]
    return _hashed(folder, tuple((path, path.stat().st_mtime_ns) for path in paths if path.exists()))


@functools.lru_cache(maxsize=64)
def _hashed(folder: str, files: tuple[tuple[Path, int], ...]) -> str:
    found = hashlib.sha256()
    for path, _ in files:
        found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def read_json(folder: str, name: str, *, optional: bool = False) -> Any:
    """Read a JSON file of the folder; return None where an optional one is not there.

    Raises:
        EnvError: it cannot be read, or is no JSON.
    """
    if optional and not (Path(folder) / name).exists():
        return None
    try:
        return json.loads(_text(folder, name))
    except ValueError as error:
        raise EnvError(f"{folder}/{name} is no JSON: {error}.", "Repair the file.") from None


def _text(folder: str, name: str) -> str:
    try:
        return (Path(folder) / name).read_text("utf-8")
    except OSError as error:
        raise EnvError(
            f"{folder}/{name} cannot be read: {error.strerror}.", "See envs/toolworld/files/__init__.py."
        ) from None
