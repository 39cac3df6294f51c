"""Files that are made once and then shared by all processes: indexes, generated passages, vectors.

What is cached has a name that follows from its content's description, so it never goes out of date. It is
made in a folder aside under a lock, and renamed when it is whole; a folder in which a file has not the
size it was finished with is made again.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from turnwise.cache_folder import cache_folder
from turnwise.tasks.core import digest

_DONE = "done.json"


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """The folder of this name, made by ``build`` unless it is there already.

    Many processes may ask at the same time; one builds, the others wait.
    """
    folder = cache_folder() / name
    if _is_whole(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if _is_whole(folder):
            return folder
        aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
        try:
            build(aside)
            sizes = {file.name: file.stat().st_size for file in aside.iterdir()}
            (aside / _DONE).write_text(json.dumps(sizes), "utf-8")
            shutil.rmtree(folder, ignore_errors=True)  # what was damaged
            aside.rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return folder


@functools.cache
def made_by(*modules: str) -> str:
    """A hash of these modules' source, and of the tables named like them: what they make is made again when they change."""
    found = [importlib.import_module(module) for module in modules]
    tables = [Path(inspect.getfile(module)).with_suffix(".yaml") for module in found]
    told = [table.read_text("utf-8") for table in tables if table.is_file()]
    return digest(*(inspect.getsource(module) for module in found), *told)


def _is_whole(folder: Path) -> bool:
    try:
        sizes: dict[str, int] = json.loads((folder / _DONE).read_text("utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False
