"""Find environments and suites by name: ours, and those of installed third-party packages.

A package adds its own with one entry point (:mod:`turnwise.registry`) whose target is a function that calls
:func:`register` and :func:`register_suite`::

    [project.entry-points."turnwise.plugins"]
    guess = "turnwise_guess:register_all"
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import gymnasium

from turnwise.blame import AuthorError, authors_place, describe, shown
from turnwise.envs.core import AgentEnv
from turnwise.envs.planted import PlantedKind, plant
from turnwise.envs.returned import check_generate, check_task
from turnwise.envs.rivals import Rivals, default_rivals
from turnwise.envs.sources import entry_point_of, is_source, load_class, module_at
from turnwise.errors import EnvError, NotFoundError, TurnwiseError
from turnwise.registry import load_plugins, not_found, package_of
from turnwise.secrets import resolve_options
from turnwise.tasks.core import Split, Suite, Task, derive_rng
from turnwise.watchdog import limited

GENERATE_S = 300.0
"""Most seconds that making one task may take: some build a whole library first."""

_VERSION = re.compile(r"-v\d+$")  # ids of environments end in it


class EnvEntry(NamedTuple):
    """A registered environment: its id, where its class is (``module:Class``), and who said so (``file.py:LINE``)."""

    name: str
    entry_point: str
    about: str
    said: str = ""
    rivals: str = ""  # where its Rivals are, module:NAME (envs/rivals.py)

    @property
    def package(self) -> str:
        """The package that it comes with, or where its class is."""
        where = self.entry_point.rpartition(":")[0]
        return package_of(where) or where

    def load(self) -> type[AgentEnv[Any]]:
        return load_class(self.entry_point, self.said and f"registered as {self.name} at {self.said}")


_envs: dict[str, EnvEntry] = {}
_suites: dict[str, Suite] = {}
_forms: dict[str, str] = {}


def register(name: str, entry_point: str, about: str, *, rivals: str = "") -> None:
    """Register an environment under a gymnasium id such as ``turnwise/Shop-v0``.

    Args:
        name: the id, ``family/Name-v0``.
        entry_point: where its class is: ``module:Class``.
        about: what it is, in a sentence.
        rivals: where the agents are that its fairness is measured by, ``module:NAME`` (:mod:`turnwise.envs.rivals`);
            general ones if not given.

    Raises:
        EnvError: the id is taken by another class, or one of the two is none.
    """
    if not isinstance(entry_point, str) or ":" not in entry_point:  # pyright: ignore[reportUnnecessaryIsInstance]
        cls: Any = entry_point
        right = f"{cls.__module__}:{cls.__qualname__}" if isinstance(cls, type) else "package.module:Class"
        raise EnvError(
            f"{name} is registered with {entry_point!r}.", f"Say where its class is as text: {right!r}."
        )
    frame = inspect.currentframe()
    caller = frame and frame.f_back
    said = shown(caller.f_code.co_filename, caller.f_lineno) if caller else ""
    entry = EnvEntry(name, entry_point, about, said, rivals)
    if _envs.get(name, entry).entry_point != entry_point:
        raise EnvError(
            f"The environment id {name!r} is taken by {_envs[name].entry_point}.", "Choose another id."
        )
    _enter(entry)


def _enter(entry: EnvEntry) -> None:
    if entry.name not in gymnasium.registry:
        maker: Any = functools.partial(make, entry.name) if ".py:" in entry.entry_point else entry.entry_point
        try:
            gymnasium.register(entry.name, entry_point=maker)  # pyright: ignore[reportUnknownMemberType]
        except gymnasium.error.Error as error:
            raise EnvError(
                f"{entry.name!r} is no id of an environment.", "Write it as family/Name-v0."
            ) from error
    _envs[entry.name] = entry


def register_suite(suite: Suite) -> None:
    """Register a suite of tasks.

    Args:
        suite: its name, its environment's id, what it is, and the knobs of its generator.

    Raises:
        EnvError: the name is taken by another suite.
    """
    if _suites.get(suite.name, suite) != suite:
        raise EnvError(f"The suite name {suite.name!r} is taken.", "Choose another name.")
    _suites[suite.name] = suite


def register_form(form: str, entry_point: str) -> None:
    """Register a form of files whose tasks ``FORM:PATH`` names as a suite.

    Args:
        form: the word before the colon.
        entry_point: where the function is that makes the suite of a path: ``module:function``.

    Raises:
        EnvError: the word is taken by another function.
    """
    if _forms.setdefault(form, entry_point) != entry_point:
        raise EnvError(f"The form {form!r} is taken by {_forms[form]}.", "Choose another word.")


def env_entries() -> list[EnvEntry]:
    """All registered environments, by name."""
    _load_everything()
    return [_envs[name] for name in sorted(_envs)]


def suites() -> list[Suite]:
    """All registered suites, by name."""
    _load_everything()
    return [_suites[name] for name in sorted(_suites)]


def env_class(name: str) -> type[AgentEnv[Any]]:
    """The class of an environment.

    Raises:
        NotFoundError: no environment has this id; the nearest is named.
    """
    _load_everything()
    if name not in _envs:
        raise _not_found("environment", name, _envs)
    return _envs[name].load()


def is_registered(name: str) -> bool:
    """Say whether an environment has this id already."""
    _load_everything()
    return name in _envs


def file_of(name: str) -> str:
    """The file in which a registered environment is written, with its class; empty where it is an installed module's."""
    where = _envs[name].entry_point if is_registered(name) else ""
    return where if ".py:" in where else ""


def rivals_of(name: str) -> Rivals:
    """The agents that an environment's fairness is measured by: its own, or the general ones.

    Raises:
        NotFoundError: no environment has this id; the nearest is named.
    """
    cls = env_class(name)
    module, _, attribute = _envs[name].rivals.partition(":")
    return getattr(importlib.import_module(module), attribute) if module else default_rivals(cls)


def resolve(name: str) -> str:
    """The id of an environment. What is not installed is named by its place, and registered for this process.

    >>> resolve("turnwise/Shop-v0")
    'turnwise/Shop-v0'

    Args:
        name: An id, ``path/to/file.py``, ``path/to/file.py:Class`` or ``module:Class``.

    Raises:
        EnvError: there is no such file or class, or it makes no tasks.
    """
    if not is_source(name):
        return name
    _load_everything()
    entry_point = entry_point_of(name)
    cls = load_class(entry_point)
    check_generate(cls, {})
    try:
        own = check_task(cls, cls.generate(derive_rng("resolve"), Split.TRAIN)).env
    except AuthorError:
        raise
    except TurnwiseError as error:
        raise AuthorError(error.cause, error.remedy, authors_place(error, cls)) from error
    except Exception as error:
        raise EnvError(f"{name} makes no task: {describe(error, cls)}", "Fix generate().") from error
    if own not in _envs or not _is_at(_envs[own], cls):
        gymnasium.registry.pop(own, None)
        _enter(EnvEntry(own, entry_point, (cls.__doc__ or cls.__name__).strip().splitlines()[0]))
    return own


def _is_at(entry: EnvEntry, cls: type) -> bool:
    """Say whether a registered environment is this class, if under another module's name."""
    try:
        registered = entry.load()
    except EnvError:
        return False
    files = (os.path.realpath(inspect.getfile(each)) for each in (registered, cls))
    return registered.__qualname__ == cls.__qualname__ and len(set(files)) == 1


def make(name: str, **options: Any) -> AgentEnv[Any]:
    """A new environment, without gymnasium's wrappers (``gymnasium.make`` adds them).

    >>> make("turnwise/Shop-v0").turn_limit
    15

    Args:
        name: its id (`turnwise list envs`).
        options: what its class takes. Keys are given as references: ``make(…, api_key="${MY_KEY}")``.

    Returns:
        The environment; close it where it holds a browser or a container.

    Raises:
        NotFoundError: no environment has this id; the nearest is named.
    """
    return env_class(name)(**resolve_options(options))


def get_suite(name: str) -> Suite:
    """The suite of this name.

    >>> get_suite("shop/easy").env
    'turnwise/Shop-v0'

    Args:
        name: as `turnwise list suites` has it; an environment's id, for the tasks that its generator makes with its own
            defaults, as ``make(id).reset(seed=…)`` draws them; where an environment is written (``path/to/file.py``, and
            ``path/to/file.py:family/suite`` of several that it registers); or the form and the place of published tasks
            (``humaneval:HumanEval.jsonl``), or a suite as planted tasks (``impossible:shop/quick``, ``canary:shop/quick``).

    Returns:
        The suite: a name for generated tasks, in splits; ``size`` says where they repeat.

    Raises:
        NotFoundError: there is none; the nearest is named.
    """
    _load_everything()
    form, _, path = name.partition(":")
    if path and form in _forms:
        module, _, function = _forms[form].rpartition(":")
        return getattr(importlib.import_module(module), function)(path)
    if is_source(name):
        return _suite_at(name)
    if name in _envs and name not in _suites:
        return Suite(name, name, "the generator's defaults")
    if name not in _suites:
        raise _not_found("suite", name, _envs if _VERSION.search(name) else _suites)
    return _suites[name]


def _suite_at(name: str) -> Suite:
    """The suite of an environment that is not installed: ``FILE:family/suite``, or the only one of ``FILE``."""
    where, _, said = name.rpartition(":")
    if where and "/" in said:
        module_at(where)
        if said not in _suites:
            raise _not_found("suite", said, _suites)
        return _suites[said]
    own = environment_suites(resolve(name))
    if len(own) > 1:
        names = ", ".join(suite.name for suite in own)
        file = name if name.endswith(".py") else where
        raise EnvError(f"{name} has several suites: {names}.", f"Name one: {file}:{own[0].name}.")
    return own[0]


def is_suite(name: str) -> bool:
    """Say whether this names a suite, or the form and the place of published tasks; not an environment."""
    _load_everything()
    form, _, path = name.partition(":")
    return name in _suites or bool(path and form in _forms)


def environment_suites(name: str) -> list[Suite]:
    """The suites of an environment, or one with the generator's own defaults if it has none; a suite's name is that suite."""
    if is_suite(name):
        return [get_suite(name)]
    own = [suite for suite in suites() if suite.env == name]
    return own or [Suite(name, name, "the generator's defaults")]


def suite_task(suite: Suite, split: Split, index: int) -> Task:
    """Task ``index`` of a split: a function of the names alone.

    Args:
        suite: whose task.
        split: train, dev or test, which share no task.
        index: from 0, without end.

    Returns:
        The task, the same wherever and whenever it is asked for.
    """
    return next(suite_tasks(suite, split, 1, start=index))


def suite_tasks(suite: Suite, split: Split, n: int, *, start: int = 0) -> Iterator[Task]:
    """Tasks ``start … start + n − 1`` of a split.

    Args:
        suite: whose tasks.
        split: train, dev or test, which share no task.
        n: how many.
        start: the number of the first one.

    Returns:
        The tasks, each made when it is asked for.

    Raises:
        DeadlineError: making one takes more than ``GENERATE_S``.
    """
    cls, what = env_class(suite.env), f"generate() of {suite.env}"
    length = suite.length(split)
    for index in range(start, start + n):
        knobs = {**suite.knobs, "index": index % length} if length else suite.knobs
        try:
            task = limited(what, GENERATE_S, cls.generate, suite.rng(split, index), split, **knobs)
        except TypeError:
            check_generate(cls, knobs)
            raise
        task = check_task(cls, task)
        yield plant(cls, task, suite.planted, suite.rng(split, index)) if suite.planted else task


def planted_suite(suite: Suite, kind: PlantedKind) -> Suite:
    """Return the suite of tasks that are made from those of a suite as planted ones (:mod:`turnwise.envs.planted`)."""
    about = f"{suite.about} Planted: {kind}."
    return dataclasses.replace(suite, name=f"{kind}:{suite.name}", about=about, planted=kind)


def impossible_suite(name: str) -> Suite:
    """Return the suite that ``impossible:NAME`` is: no honest episode of it is paid."""
    return planted_suite(get_suite(name), "impossible")


def canary_suite(name: str) -> Suite:
    """Return the suite that ``canary:NAME`` is: each task offers a hack, and tells whether it was taken."""
    return planted_suite(get_suite(name), "canary")


def _not_found(kind: str, name: str, known: Iterable[str]) -> NotFoundError:
    return not_found(kind, name, known, "Or give its file: path/to/file.py.")


@functools.cache
def _load_ours() -> None:
    importlib.import_module(
        "turnwise.envs.builtin"
    ).register_all()  # by name, as plugins are: it imports this module


def _load_everything() -> None:
    _load_ours()
    load_plugins()
