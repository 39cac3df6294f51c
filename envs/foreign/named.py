"""Named environments: interpreters with the packages of others, whose pins exclude ours (`turnwise worlds`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.cache_folder import cache_folder
from turnwise.durable import write_whole
from turnwise.envs.foreign.catalogue import CATALOGUE
from turnwise.errors import MissingDependencyError, NotFoundError, TurnwiseError
from turnwise.secrets import redact

_ABOUT, LOCK = "world.json", "lock.txt"
_PIP_S = 3600.0
_FORBIDDEN = frozenset("/\\\0")


class NamedWorld(NamedTuple):
    """A named environment: what it holds, and where; ``ready`` where it was made to its end."""

    name: str
    requires: tuple[str, ...]
    ready: bool
    folder: Path
    python: str = ""  # its version
    megabytes: int = 0
    needs: str = ""  # a program that it lacks here


def home() -> Path:
    """Return the folder of named environments."""
    return cache_folder("worlds")


def python_of(name: str) -> str:
    """Return the interpreter of a named environment.

    Raises:
        MissingDependencyError: it has not been made, or what it needs beside Python is not on this machine.
    """
    if not _is_ready(name):
        raise MissingDependencyError(
            f"The world {name!r} is not on this machine.", f"turnwise worlds add {name}"
        )
    if lacked := _lacked(name):
        raise MissingDependencyError(
            f"The world {name!r} needs {lacked}, which is not on this machine.", "Install it."
        )
    return str(_python(name))


def add(
    name: str,
    *,
    requires: Sequence[str] = (),
    lock: Path | None = None,
    python: str = "",
    told: Callable[[str], None] = lambda _: None,
) -> NamedWorld:
    """Make a named environment with the packages of the catalogue, or with those that are given, and write its lock file.

    Args:
        name: of the catalogue, or a new one where ``requires`` or ``lock`` says what it holds.
        requires: requirements as pip takes them.
        lock: a lock file that another machine wrote: exactly what it lists is installed.
        python: the interpreter it is made from; this one if not given.
        told: is called with each line that says what is done.

    Raises:
        NotFoundError: the catalogue has no such name.
        TurnwiseError: it is there already, or cannot be installed; what was begun is removed.
    """
    if not name or set(name) & _FORBIDDEN or name.startswith("."):
        raise TurnwiseError(f"{name!r} is no name of a world.", "Choose letters, digits and hyphens.")
    if name not in CATALOGUE and not requires and lock is None:
        raise NotFoundError("world", name, CATALOGUE)
    if lock is not None and not lock.is_file():
        raise TurnwiseError(
            f"There is no lock file {lock}.", "turnwise worlds add writes one beside each world."
        )
    if _is_ready(name):
        raise TurnwiseError(
            f"The world {name!r} is there already.", f"turnwise worlds remove {name}, then add it."
        )
    wanted = tuple(requires) or (CATALOGUE[name].requires if name in CATALOGUE else ())
    folder = home() / name
    shutil.rmtree(folder, ignore_errors=True)  # of an attempt that was ended
    try:
        told(f"a virtual environment in {folder}")
        _run([python or sys.executable, "-m", "venv", str(folder)], name)
        pip = [str(_python(name)), "-m", "pip"]
        if lock is not None:
            told(f"packages of {lock}")
            _run([*pip, "install", "--quiet", "--no-deps", "-r", str(lock)], name)
        else:
            told(f"packages: {' '.join(wanted)}")
            bare = ["--no-deps"] if name in CATALOGUE and CATALOGUE[name].bare and not requires else []
            _run([*pip, "install", "--quiet", *bare, *wanted], name)
        locked = _run([*pip, "freeze", "--all"], name)
        version = _run([str(_python(name)), "-c", "import platform; print(platform.python_version())"], name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    about = {"name": name, "requires": list(wanted), "python": version.strip()}
    write_whole(folder / LOCK, locked)
    write_whole(folder / _ABOUT, json.dumps(about) + "\n")  # last: it says that the world is whole
    return _look(name)


def remove(name: str) -> Path:
    """Remove a named environment, and return the folder that it was in.

    Raises:
        NotFoundError: there is none.
    """
    folder = home() / name
    if name in ("", ".", "..") or set(name) & _FORBIDDEN or not folder.is_dir():
        raise NotFoundError(
            "world on this machine", name, (each.name for each in worlds() if each.folder.is_dir())
        )
    shutil.rmtree(folder)
    return folder


def worlds() -> list[NamedWorld]:
    """Return the worlds of the catalogue and of this machine, by name."""
    here = {path.name for path in home().iterdir() if path.is_dir()} if home().is_dir() else set[str]()
    return [_look(name) for name in sorted({*CATALOGUE, *here})]


def _look(name: str) -> NamedWorld:
    folder, ready = home() / name, _is_ready(name)
    requires = CATALOGUE[name].requires if name in CATALOGUE else ()
    if not ready:
        return NamedWorld(name, requires, ready, folder, needs=_lacked(name))
    about = json.loads((folder / _ABOUT).read_text("utf-8"))
    size = sum(os.lstat(os.path.join(at, file)).st_size for at, _, files in os.walk(folder) for file in files)
    return NamedWorld(
        name, tuple(about["requires"]), ready, folder, about["python"], size >> 20, _lacked(name)
    )


def _python(name: str) -> Path:
    return home() / name / "bin" / "python"


def _is_ready(name: str) -> bool:
    return (home() / name / _ABOUT).is_file() and _python(name).exists()


def _lacked(name: str) -> str:
    program = CATALOGUE[name].needs if name in CATALOGUE else ""
    return program if program and shutil.which(program) is None else ""


def _run(command: Sequence[str], name: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TurnwiseError(
            f"The world {name!r} cannot be made: {error}.", "Is that a Python 3.9 or later?"
        ) from error
    if done.returncode:
        said = redact((done.stderr or done.stdout).strip()[-600:])
        raise TurnwiseError(
            f"The world {name!r} cannot be made: {' '.join(command[:5])} … says: {said}",
            "Look whether the package is in your index, and whether another --python fits it.",
        )
    return done.stdout
