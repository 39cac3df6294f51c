"""Source of an environment's class: an importable module, or a file that nobody installed."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium

from turnwise.blame import describe, remedy
from turnwise.envs.core import AgentEnv
from turnwise.envs.returned import check_class
from turnwise.errors import EnvError, TurnwiseError
from turnwise.extras import extra_of
from turnwise.extras import missing as missing_library

WRAP = "Write an AgentEnv that plays it: docs/how-to/gymnasium.md."
"""The remedy where a class of Gymnasium's own stands."""

_sound: set[type] = set()
_locks: dict[str, threading.RLock] = {}  # of files that are modules: one thread runs each


def is_source(name: str) -> bool:
    """Say whether a name says where a class is written, and is no id.

    It is then ``path/to/file.py[:Class]`` or ``module:Class``.
    """
    return ":" in name or name.endswith(".py")


def load_class(entry_point: str, said: str = "") -> type[AgentEnv[Any]]:
    """The environment's class at ``module:Class`` or ``path/to/file.py:Class``.

    ``said`` is where that was written down, for the message.

    Raises:
        EnvError: the module or the class is not there, or is no environment.
    """
    where, _, name = entry_point.rpartition(":")
    module = load_module(where, said)
    if not hasattr(module, name):
        near = difflib.get_close_matches(name, environments_in(module) or vars(module), n=1)
        known = ", ".join(environments_in(module)) or "none"
        remedy = f"Did you mean {near[0]!r}?" if near else f"Environments in it: {known}."
        raise EnvError(f"There is no {name!r} in {where}{said and f' ({said})'}.", remedy)
    cls = getattr(module, name)
    if cls not in _sound:
        _check(cls, entry_point, said)
        _sound.add(cls)
    return cls


def module_at(where: str) -> ModuleType:
    """The module at ``path/to/file.py`` or ``module``, as a command or a recipe names it from the current folder.

    Raises:
        EnvError: it is not there or cannot be imported.
    """
    if where.endswith(".py"):
        return load_module(str(Path(where).expanduser().resolve()))
    look_here()
    return load_module(where)


def entry_point_of(source: str) -> str:
    """``source`` in full: a file's absolute path, and the class even where it was left out.

    Raises:
        EnvError: there is no such file or class, or several classes could be meant.
    """
    where, _, name = source.rpartition(":") if not source.endswith(".py") else (source, "", "")
    if where.endswith(".py"):
        where = str(Path(where).expanduser().resolve())
    else:
        look_here()
    return f"{where}:{name or _only_class(load_module(where), where)}"


def look_here() -> None:
    """Find modules in the current folder: an installed command does not look where it is called."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


def _check(cls: Any, entry_point: str, said: str) -> None:
    at = said and f" ({said})"
    if not inspect.isclass(cls):
        raise EnvError(
            f"{entry_point} is no class{at}.", "Name a class that inherits from turnwise.AgentEnv."
        )
    if not issubclass(cls, AgentEnv):
        raise EnvError(
            f"{entry_point} is no turnwise.AgentEnv{at}.",
            WRAP
            if issubclass(cls, gymnasium.Env)
            else "Inherit from turnwise.AgentEnv and write initial and transition (docs/writing-an-environment.md).",
        )
    check_class(cls, AgentEnv)


def load_module(where: str, said: str = "") -> ModuleType:
    """An importable module, or the one in a file ``path/to/file.py``.

    ``said`` is where that was written down, for the message.

    Raises:
        EnvError: it is not there or cannot be imported; with the line at which it failed.
    """
    at = said and f" ({said})"
    try:
        return _file_module(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except TurnwiseError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if where == missing or where.startswith(f"{missing}."):
            raise EnvError(
                f"There is no module {where!r}{at}.",
                "Write module:Class as it is imported, and install its package (pip install -e .).",
            ) from error
        if extra_of(missing):
            raise missing_library(missing, where) from error
        raise EnvError(
            f"{where} needs {missing!r}: {describe(error)}{at}.", "Install that library."
        ) from error
    except (Exception, SystemExit) as error:
        raise EnvError(f"{where} cannot be imported: {describe(error)}.", remedy(error)) from error


def _file_module(file: Path) -> ModuleType:
    """The module in a file: by its name if it lies in a package, so that relative imports work."""
    if not file.is_file():
        hint = difflib.get_close_matches(file.name, [other.name for other in file.parent.glob("*.py")], n=1)
        remedy = f"Did you mean {file.with_name(hint[0])}?" if hint else "Give its path from here."
        raise EnvError(f"There is no file {file}.", remedy)
    root, parts = file.parent, [] if file.stem == "__init__" else [file.stem]
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    if str(root) not in sys.path:
        sys.path.append(str(root))  # for what lies beside it
    if root != file.parent:
        return importlib.import_module(".".join(parts))
    name = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"  # `code.py` must not hide Python's
    with _locks.setdefault(name, threading.RLock()):
        return sys.modules.get(name) or _run(name, file)


def _run(name: str, file: Path) -> ModuleType:
    """Run a file as a module. Other threads wait at its lock until it has run."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[name])
    except BaseException:
        del sys.modules[name]
        raise
    return sys.modules[name]


def environments_in(module: ModuleType) -> list[str]:
    """The environments that are written in a module."""
    return _classes_in(module, AgentEnv)


def _classes_in(module: ModuleType, base: type) -> list[str]:
    own = (cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == module.__name__)
    return [cls.__name__ for cls in own if issubclass(cls, base)]


def _only_class(module: ModuleType, where: str) -> str:
    names = environments_in(module)
    bases = {base.__name__ for name in names for base in getattr(module, name).__mro__[1:]}
    leaves = [name for name in names if name not in bases]
    if len(leaves) == 1:
        return leaves[0]
    if not names:
        plain = _classes_in(module, gymnasium.Env)
        if plain:
            raise EnvError(f"{where} has no turnwise.AgentEnv: {plain[0]} is a gymnasium.Env.", WRAP)
        raise EnvError(
            f"{where} has no environment.", "It needs a class that inherits from turnwise.AgentEnv."
        )
    raise EnvError(
        f"{where} has several environments: {', '.join(leaves)}.", f"Name one: {where}:{leaves[0]}."
    )
