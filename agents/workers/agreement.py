"""Comparison of the code of two machines: a worker of another version would play other episodes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import turnwise
from turnwise.agents.log.records import env_version
from turnwise.agents.workers.wire import unframed
from turnwise.envs.registry import EnvEntry, env_entries, register
from turnwise.errors import EnvError

_ROOMS = ("tasks", "tools", "envs", "agents")


@functools.cache
def code(rooms: tuple[str, ...] = _ROOMS) -> dict[str, str]:
    """Name the code of this process: Python's version, Turnwise's, and a digest of all that plays episodes, or of other
    folders."""
    root, text = Path(turnwise.__file__).parent, hashlib.blake2b(digest_size=8)
    for path in sorted(path for room in rooms for path in (root / room).rglob("*.py")):
        text.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, "Turnwise": turnwise.__version__, "Turnwise's code": text.hexdigest()}


def difference(here: Mapping[str, str], there: Mapping[str, object]) -> str:
    """In what two processes differ, in words; empty if in nothing.

    >>> difference({"Python": "3.11"}, {"Python": "3.12"})
    'Python is 3.11 here and 3.12 there'
    """
    found = [
        f"{name} is {own} here and {there.get(name)} there"
        for name, own in here.items()
        if there.get(name) != own
    ]
    return "; ".join(found)


def said_in(frame: bytes | None) -> Mapping[str, Any]:
    """The object of JSON in a frame; an empty one where there is none."""
    with contextlib.suppress(ValueError):
        found = json.loads(bytes(unframed(frame)) if frame else b"")
        if isinstance(found, dict):
            return found
    return {}


class KnownEnv(NamedTuple):
    """An environment as the run knows it, and the hash of its source there."""

    entry: EnvEntry
    source: str


def known_envs(names: Sequence[str]) -> tuple[KnownEnv, ...]:
    """The environments of these names as they are here."""
    entries = {entry.name: entry for entry in env_entries()}
    return tuple(KnownEnv(entries[name], env_version(name, {}).source) for name in dict.fromkeys(names))


def agree(envs: Sequence[KnownEnv]) -> None:
    """See that the environments of a run are the same here.

    Raises:
        EnvError: one is not.
    """
    known = {entry.name for entry in env_entries()}
    for env in envs:
        if env.entry.name not in known:  # the run registered it by itself
            register(env.entry.name, env.entry.entry_point, env.entry.about)
        source = env_version(env.entry.name, {}).source
        if source != env.source:
            raise EnvError(
                f"{env.entry.name} has another source here ({source}) than in the run ({env.source}).",
                "Install the same version of it.",
            )
