"""The backends by their names, ours and those of plugins, one of each per process."""

from __future__ import annotations

from functools import cache

from turnwise.errors import MissingDependencyError
from turnwise.registry import components, get_component
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.pool import Pool


def backend_names() -> list[str]:
    """Ours by how fast they start, then those of plugins."""
    return [entry.name for entry in components("sandbox")]


def get_backend(name: str, *, unsafe: bool = False) -> Backend:
    """The backend of this name. ``unsafe=True`` admits ``process``, which isolates nothing.

    Raises:
        NotFoundError: there is none.
        TurnwiseError: it isolates nothing, and ``unsafe`` was not said.
    """
    get_component("sandbox", name)
    return _made(name, unsafe)


@cache
def _made(name: str, unsafe: bool) -> Backend:
    return make_backend(name, unsafe=unsafe)


def make_backend(name: str, *, unsafe: bool = False) -> Backend:
    """A backend of its own, which shares nothing with the one that :func:`get_backend` keeps."""
    entry = get_component("sandbox", name)
    return entry.build({"unsafe": unsafe} if "unsafe" in entry.options else {})()


def get_pool(name: str = "", *, unsafe: bool = False) -> Pool:
    """The process's warm pool over the backend of this name, or over the first that works here and isolates.

    Raises:
        NotFoundError, MissingDependencyError, TurnwiseError: see :func:`get_backend` and :func:`isolated_backend`.
    """
    return _pool(get_backend(name, unsafe=unsafe) if name else isolated_backend())


@cache
def _pool(backend: Backend) -> Pool:
    return Pool(backend)


@cache
def isolated_backend() -> Backend:
    """The first backend that works here and isolates what runs in it.

    Raises:
        MissingDependencyError: there is none; says why for each.
    """
    told: list[str] = []
    for entry in components("sandbox"):
        if not entry.isolates:
            continue
        status = get_backend(entry.name).status()
        if status.ok:
            return get_backend(entry.name)
        told.append(f"{entry.name}: {status.detail}")
    raise MissingDependencyError(
        f"No sandbox works here ({'; '.join(told)}).",
        "python3 scripts/sandboxes.py (root on Debian), or see doctor.",
    )
