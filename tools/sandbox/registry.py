"""The back ends by their names, one of each per process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from turnwise.errors import MissingDependencyError, NotFoundError
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.pool import Pool


def _bubblewrap() -> Backend:
    from turnwise.tools.sandbox.bubblewrap import BubblewrapBackend

    return BubblewrapBackend()


def _docker() -> Backend:
    from turnwise.tools.sandbox.docker import DockerBackend

    return DockerBackend()


def _process() -> Backend:
    from turnwise.tools.sandbox.process import ProcessBackend

    return ProcessBackend(trusted=True)


BACKENDS: Mapping[str, Callable[[], Backend]] = MappingProxyType(
    {"bubblewrap": _bubblewrap, "docker": _docker, "process": _process}
)
"""By how fast they start. ``process`` isolates nothing, so :func:`isolated_backend` never chooses it."""


@cache
def get_backend(name: str) -> Backend:
    """The back end of this name. Naming ``process`` says that what will run in it is trusted.

    Raises:
        NotFoundError: there is none.
    """
    if name not in BACKENDS:
        raise NotFoundError("sandbox back end", name, BACKENDS)
    return BACKENDS[name]()


@cache
def get_pool(name: str, size: int) -> Pool:
    """A warm pool of ``size`` sandboxes over the back end of this name, shared by all who ask for it."""
    return Pool(get_backend(name), size=size)


@cache
def isolated_backend() -> Backend:
    """The first back end that works here and isolates what runs in it.

    Raises:
        MissingDependencyError: there is none; says why for each.
    """
    told: list[str] = []
    for name in ("bubblewrap", "docker"):
        status = get_backend(name).status()
        if status.ok:
            return get_backend(name)
        told.append(f"{name}: {status.detail}")
    raise MissingDependencyError(
        f"No sandbox works here ({'; '.join(told)}).",
        "python3 scripts/sandboxes.py (root on Debian), or see doctor.",
    )
