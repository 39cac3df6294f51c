"""Finds the line in an environment author's code that an error comes from.

An environment is run by Turnwise, so the last frame of a traceback is seldom the one that its author can fix.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import linecache
import os
import re
import site
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import turnwise
from turnwise.errors import EnvError, TurnwiseError

PLUGIN_GROUP = "turnwise.plugins"
"""The group of entry points through which packages add environments."""
FIX = "Fix that line."
_LONGEST = 600  # characters of an error's own words


def installed_plugins() -> tuple[EntryPoint, ...]:
    """The entry points of installed plugins, by name.

    Every lookup of an environment asks for them, and to read the metadata of all installed packages takes 20 ms:
    they are read again only where ``sys.path`` has changed.
    """
    return _plugins_on(tuple(sys.path))


@functools.lru_cache(8)
def _plugins_on(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=PLUGIN_GROUP), key=lambda entry: entry.name))


class AuthorError(EnvError):
    """Breach of the contract by what an environment's author returned or declared; ``place`` is where that is written."""

    def __init__(self, cause: str, remedy: str, place: str = "") -> None:
        super().__init__(f"{cause.removesuffix('.')} ({place})." if place else cause, remedy)
        self.place = place


def place(error: BaseException, cls: type | None = None) -> str:
    """``file.py:LINE`` of the author's code that ``error`` passed through, as short as it can still be found.

    It is the deepest frame that lies in the folder of ``cls`` (an environment's class) or of a class that it
    inherits from; without one the deepest that belongs neither to Python, nor to an installed library, nor to
    Turnwise; else the deepest. Empty where nothing was traced.
    """
    return authors_place(error, cls) or _deepest(error)


def authors_place(error: BaseException, cls: type | None = None) -> str:
    """:func:`place`, but empty where no frame is an author's."""
    for each in _chain(error):
        if isinstance(each, AuthorError) and each.place:
            return each.place
        if isinstance(each, SyntaxError) and each.filename and _is_authors(each.filename):
            return shown(each.filename, each.lineno or 1)
    folders = _folders(cls)
    for mine in (lambda file: _lies_in(file, folders), _is_authors):
        for each in _chain(error):
            for file, line in reversed(_frames(each)):
                if mine(file):
                    return shown(file, line)
    return ""


def users_place(error: BaseException) -> str:
    """The user's own line that an error passed through, in a script or a plugin; empty where it is ours alone."""
    plugins = _plugin_folders()
    for each in _chain(error):
        for file, line in reversed(_frames(each)):
            if _lies_in(file, plugins) or (_is_authors(file) and not is_turnwise(file)):
                return shown(file, line)
    return ""


def describe(error: BaseException, cls: type | None = None) -> str:
    """One line: what kind of error, its words and its place.

    >>> describe(TurnwiseError("No suite 'shop/eazy'.", "Did you mean 'shop/easy'?"))
    "TurnwiseError: No suite 'shop/eazy'. → Did you mean 'shop/easy'?"
    """
    words = " ".join(_words(error).split())[:_LONGEST]
    # An error of ours says itself where to look; a line of Turnwise's would be noise.
    where = authors_place(error, cls) if isinstance(error, TurnwiseError) else place(error, cls)
    # What an author reads about their own work needs no name of an exception of ours.
    kind = "" if isinstance(error, AuthorError) else type(error).__name__
    said = ": ".join(filter(None, (kind, words)))
    return f"{said} ({where})" if where and where not in words else said


def remedy(error: BaseException) -> str:
    """Suggest what the author of the line can do about an error that is not one of ours.

    >>> remedy(ZeroDivisionError())
    'Fix that line.'
    """
    about: Any = getattr(error, "obj", None)
    if isinstance(error, AttributeError) and type(about).__name__ in ("Message", "Messages"):
        return "An action is a Message: its text is action.content, its calls are action.tool_calls."
    if isinstance(error, AttributeError) and (members := _enum_of(error)) is not None:
        return f"{members.__name__} has {', '.join(members.__members__)}."
    if isinstance(error, SystemExit):
        return "Return an EndReason (GAVE_UP or FAILED); an environment does not leave the process."
    return FIX


def _enum_of(error: AttributeError) -> enum.EnumType | None:
    """The enum that was asked for a member which it has not; its own error says the member alone."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        text = linecache.getline(frame.f_code.co_filename, line)
        for name in re.findall(rf"(\w+)\.{re.escape(str(error))}\b", text):
            found = frame.f_globals.get(name)
            if isinstance(found, enum.EnumType):
                return found
    return None


def written_at(code: object) -> str:
    """``file.py:LINE`` at which a function, method or class is defined; empty where that is unknown."""
    code = inspect.unwrap(code) if callable(code) else code
    function = getattr(code, "__func__", code)
    if inspect.isfunction(function):
        return shown(function.__code__.co_filename, function.__code__.co_firstlineno)
    try:
        file, (_, line) = inspect.getsourcefile(function), inspect.getsourcelines(function)  # pyright: ignore[reportArgumentType]
    except (TypeError, OSError):
        return ""
    return shown(file, line) if file else ""


def shown(file: str, line: int) -> str:
    """``file:line``, relative to where one is, or with the last two parts of the path."""
    if file.startswith("<"):
        return f"{file}:{line}"
    path = Path(file)
    with contextlib.suppress(FileNotFoundError):  # the folder where one is was deleted
        here = Path.cwd()
        if path.is_relative_to(here) and not _in_library(str(path.relative_to(here))):
            return f"{path.relative_to(here)}:{line}"
    return f"{Path(*path.parts[-2:])}:{line}" if len(path.parts) > 2 else f"{file}:{line}"


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as again:  # noqa: BLE001 (an author's __str__ may raise anything)
        return f"its message cannot be shown ({type(again).__name__})"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, those inside it, and those that it was raised from, nearest first."""
    seen = set[int]()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        waiting.append(each.__cause__ or (None if each.__suppress_context__ else each.__context__))


def _frames(error: BaseException) -> list[tuple[str, int]]:
    """File and line of each frame below Turnwise's first one: those above it only called Turnwise."""
    frames = [(f.filename, f.lineno or 0) for f in traceback.StackSummary.extract(
        traceback.walk_tb(error.__traceback__), lookup_lines=False)]  # fmt: skip
    first = next((n for n, (file, _) in enumerate(frames) if _is_machinery(file)), 0)
    return frames[first:]


def _deepest(error: BaseException) -> str:
    frames = _frames(error)
    return shown(*frames[-1]) if frames else ""


# --- whose a file is ---------------------------------------------------------------------------------


def _folders(cls: type | None) -> list[str]:
    """List the folders, or single files, with the code of a class and of those that it inherits from."""
    found = list[str]()
    for base in cls.__mro__ if cls else ():
        try:
            file = _real(inspect.getfile(base))
        except (TypeError, OSError):
            continue
        if _is_machinery(file) or _is_stdlib(file):
            continue
        folder = os.path.dirname(file)
        found.append(file if folder in _libraries() else folder)
    return found


def _plugin_folders() -> list[str]:
    """List the folders of installed plugins, which are libraries to Python but a user's own work to us."""
    found = list[str]()
    for entry in installed_plugins():
        file = getattr(sys.modules.get(entry.module), "__file__", None)
        if file:
            folder = os.path.dirname(_real(file))
            found.append(_real(file) if folder in _libraries() else folder)
    return found


def _lies_in(file: str, places: list[str]) -> bool:
    if file.startswith("<"):  # code without a file, such as a dataclass's __init__
        return False
    file = _real(file)
    return any(
        file == own or (file.startswith(own + os.sep) and not _in_library(file[len(own) :])) for own in places
    )


def _is_authors(file: str) -> bool:
    """Say whether a file belongs neither to Python nor to a library nor to what runs environments in Turnwise."""
    if file.startswith("<"):
        return file == "<stdin>"
    return not (_is_machinery(file) or _is_stdlib(file) or _in_library(_real(file)))


def is_turnwise(file: str) -> bool:
    """Return whether a file belongs to Turnwise, its own environments included."""
    file = _real(file)
    return any(file.startswith(root + os.sep) for root in _roots())


def _is_machinery(file: str) -> bool:
    if not is_turnwise(file):
        return False
    inside = os.path.relpath(_real(file), _envs()).split(os.sep)
    family = len(inside) > 1 and inside[0] not in (os.pardir, "bench", "check")
    return not family


def _is_stdlib(file: str) -> bool:
    real = _real(file)
    return any(real.startswith(root + os.sep) for root in _stdlib()) and not _in_library(real)


def _in_library(path: str) -> bool:
    return "site-packages" in path or "dist-packages" in path


@functools.cache
def _roots() -> tuple[str, ...]:
    """Turnwise's folder and those that it links to."""
    package = Path(turnwise.__file__).parent
    return tuple({_real(str(path)) for path in (package, *package.iterdir()) if path.is_dir()})


@functools.cache
def _envs() -> str:
    return _real(str(Path(turnwise.__file__).parent / "envs"))


@functools.cache
def _stdlib() -> tuple[str, ...]:
    return tuple({_real(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})


@functools.cache
def _libraries() -> frozenset[str]:
    folders = [*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("purelib")]
    return frozenset(map(_real, folders))


@functools.lru_cache(maxsize=1024)
def _real(path: str) -> str:
    return os.path.realpath(path)
