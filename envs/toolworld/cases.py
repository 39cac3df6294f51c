"""From a task to its case: the domain that it names, loaded once, and the world that it begins in."""

from __future__ import annotations

import functools
import importlib

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import DOMAINS, Domain
from turnwise.envs.toolworld.files.domain import fingerprint, folder_of, load_domain
from turnwise.envs.toolworld.state import ToolWorldCase
from turnwise.envs.toolworld.story import Story
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Task, derive_rng

_loaded: dict[str, Domain] = {}


def domain_of(name: str) -> Domain:
    """A domain by its name: one of ours, or a folder of files (``files:PATH``, ``code:PATH``).

    Raises:
        NotFoundError: there is none of this name.
    """
    if folder := folder_of(name):
        key = f"{name}#{fingerprint(folder)}"
        if key not in _loaded:
            _loaded[key] = load_domain(name)
        return _loaded[key]
    if name not in DOMAINS:
        raise NotFoundError("domain", name, DOMAINS)
    if name not in _loaded:
        _loaded[name] = importlib.import_module(DOMAINS[name]).DOMAIN
    return _loaded[name]


@functools.lru_cache(maxsize=512)
def world(name: str, seed: str, size: int) -> Database:
    """The world of this seed, built once per process and shared: databases are immutable."""
    return domain_of(name).build(derive_rng("world", name, seed), size)


def case_of(task: Task, *, played: bool = False) -> ToolWorldCase:
    """The case of a task; ``played``: its user is, by an agent or a model.

    Raises:
        EnvError: its plan does not work, or the files of its domain are not those that it was made of.
    """
    options = task.options
    name = options["domain"]
    seed, size = options["world"]
    if (folder := folder_of(name)) and (stamp := fingerprint(folder)) != seed:
        raise EnvError(f"The files of {name} have changed: {stamp}, not {seed}.", "Make the tasks again.")
    base = world(name, seed, size)
    for table, key, fields in options.get("patch", ()):
        base = base.update(table, key, **fields)
    base = base.untouched()  # what the task's own world differs in was touched by nobody
    return ToolWorldCase(domain_of(name), Story.from_json(options["story"]), base, task.id, played)
