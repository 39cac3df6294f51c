"""Answers of `turnwise explain` on recipes, each kept for as long as all that it came from stays as it was.

A recipe is checked by trying its parts on small batches, and loading torch for that takes longer than all the rest. So the
answer is kept in ``~/.cache/turnwise/explained`` (``XDG_CACHE_HOME``), under a hash of what decides it: the recipe's text and the
changes, the content of every file of code of Turnwise and of the packages with plugins, size and time of the files that the
recipe names, and the versions of Python and torch. So what ``make`` explains ahead, when it installs, still holds after a branch
was left and entered again. Whatever looks at more than that (programs that play, opponents) is not kept.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import yaml

import turnwise
from turnwise.blame import installed_plugins
from turnwise.cache_folder import cache_folder
from turnwise.cli.answer import Json
from turnwise.plain_yaml import read_yaml

MOST = 200
"""So many answers are kept, the newest."""
_BEYOND = frozenset({"agent", "opponents"})
"""Keys of recipes whose checks look at more than files that the recipe names."""
_CODE = (".py", ".yaml")


class KeptAnswer(NamedTuple):
    """The place where the answer to a question is kept."""

    file: Path

    def read(self) -> dict[str, Json] | None:
        """The answer, if it is there and the recipe's bias is as well known as it was then."""
        try:
            kept: dict[str, Any] = json.loads(self.file.read_text("utf-8"))
            same = kept["bias_state"] == _state(Path(kept["bias_file"]))
            return kept["answer"] if same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, answer: Mapping[str, Json], bias_file: Path) -> None:
        """Keep an answer, which a disk that cannot be written just does not do."""
        keep(
            self.file, {"answer": dict(answer), "bias_file": str(bias_file), "bias_state": _state(bias_file)}
        )


def keep(file: Path, value: Mapping[str, Any]) -> None:
    """Write a file of a cache, whole or not at all, and remove the oldest beside it beyond :data:`MOST`."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(value), "utf-8")
        aside.replace(file)
        files = sorted(file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        for old in files[:-MOST]:
            old.unlink(missing_ok=True)


@contextlib.contextmanager
def quick_loading() -> Iterator[None]:
    """Load libraries in half the time, for a process that only looks at recipes.

    Without the garbage collector, which else looks through all modules again and again, and once more at exit; and torch without
    its kernels for shapes alone, which only tracing and compiling need: they are loaded before ``torch._dynamo`` is, or when they
    are asked for.
    """
    was = gc.isenabled()
    gc.disable()
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, _Deferring())
    try:
        yield
    finally:
        gc.freeze()
        if was:
            gc.enable()


class _Deferring(importlib.abc.MetaPathFinder):
    """Finds the deferred module, to be run when it is needed."""

    MODULE = "torch._meta_registrations"

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname == self.MODULE:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            return spec and spec_from_file_location(
                fullname, spec.origin, loader=_Deferred(fullname, spec.origin or "")
            )
        if fullname == "torch._dynamo":
            _run(sys.modules.get(self.MODULE))
        return None


class _Deferred(importlib.machinery.SourceFileLoader):
    """Leaves a module empty until one of its names is asked for."""

    def exec_module(self, module: ModuleType) -> None:
        def later(name: str) -> Any:
            if name.startswith("__"):  # the machinery of imports asks for those
                raise AttributeError(name)
            _run(module)
            return getattr(module, name)

        vars(module)["__getattr__"] = later


def _run(module: ModuleType | None) -> None:
    """Run a module that was left empty; one that has run is left alone."""
    loader = module and module.__spec__ and module.__spec__.loader
    if module and isinstance(loader, _Deferred) and vars(module).pop("__getattr__", None):
        super(_Deferred, loader).exec_module(module)


def kept_answer(recipe: str, changes: Mapping[str, Any]) -> KeptAnswer | None:
    """Return the place where the answer for a recipe with these changes is kept; None where it must not be."""
    folder = Path(turnwise.__file__).parent
    given = Path(recipe) if recipe.endswith((".yaml", ".yml")) else None
    file = given or folder / "trainers" / "recipe" / "presets" / f"{recipe}.yaml"
    try:
        text = file.read_text("utf-8")
        keys: Any = read_yaml(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None  # the check says what is wrong
    said = [*_leaves(keys, ""), *_leaves(dict(changes), "")]
    if any(_BEYOND & {*key.split(".")} for key, _ in said):
        return None
    decides = [
        recipe, text, sorted(said, key=str), code_state(),
        [_named(value) for _, value in said if isinstance(value, str) and len(value) < 1000],
    ]  # fmt: skip
    name = hashlib.sha256(json.dumps(decides, default=str).encode()).hexdigest()[:24]
    return KeptAnswer(cache_folder("explained") / f"{name}.json")


@functools.cache
def code_state() -> str:
    """A hash of the code that answers: every file of Turnwise and of the packages with plugins, the versions of Python and torch."""
    decides = [sys.version, [*_versions()], [*_files(Path(turnwise.__file__).parent)]]
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Every plain value with its dotted key; items of a list have that of the list."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, f"{key}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key)
    else:
        yield key, value


def _versions() -> Iterator[str]:
    yield turnwise.__version__
    for name in ("torch", "pydantic"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            yield f"{name} {importlib.metadata.version(name)}"
    for entry in installed_plugins():
        yield f"{entry.name} = {entry.value} {entry.dist.version if entry.dist else ''}"


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file of code of Turnwise and of the packages with plugins: its path and a hash of its content."""
    yield from _code_in(str(folder))
    for top in sorted({entry.module.partition(".")[0] for entry in installed_plugins()}):
        spec = None
        with contextlib.suppress(ValueError):  # a module that was made, not found
            spec = importlib.util.find_spec(top)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield from _code_in(place)
        if spec and spec.origin:
            yield spec.origin, _content(spec.origin)


def _code_in(folder: str) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _code_in(entry.path)
            elif entry.name.endswith(_CODE):
                yield entry.path, _content(entry.path)


def _content(path: str) -> str:
    """A hash of a file's content; empty for a link that leads nowhere, such as an editor's lock."""
    try:
        with open(path, "rb", buffering=0) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _named(value: str) -> tuple[str, list[int]] | None:
    """Find the file or folder that a recipe may mean, with its state; None where there is none."""
    state = _state(Path(value))
    return (os.path.realpath(value), state) if state else None


def _state(path: Path) -> list[int] | None:
    """Size and time of a file or folder; None where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return [found.st_size, found.st_mtime_ns]
