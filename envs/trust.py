"""Limits on what a log may say of an environment, and what only its reader may say.

A log is data of strangers. Its tasks and options are used to make environments again, so they may not loosen isolation,
name files or addresses, or hold references to variables, unless whoever reads the log says that they trust it, or
gives the same themselves. Environments declare which options these are (:attr:`turnwise.envs.core.AgentEnv.guarded_options`,
:attr:`turnwise.envs.core.AgentEnv.guarded_tasks`); an option that is not declared is judged by the form of its value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from turnwise.envs.core import AgentEnv, Guard
from turnwise.envs.registry import env_class, is_registered, make, resolve
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Task

_REACHING = re.compile(
    r"\$\{"  # a reference to a variable
    r"|[/\\]"  # a path or an address
    r"|^\s*[~.]"
    r"|^\s*[\w.\-]+:\S"  # module:Class, openai:MODEL, host:port, C:file
    r"|^\s*[\w\-. ]+\.[A-Za-z]\w{0,5}\s*$"  # file.ext, host.org
    r"|^\s*\d+\.\d+\.\d+\.\d+\s*$"
    r"|^\s*localhost\s*$",
    re.ASCII | re.IGNORECASE,
)
_DEEPEST = 40


@dataclass(frozen=True)
class LogTrust:
    """Trust in a log by whoever reads it.

    Attributes:
        log: whatever it says is carried out.
        options: that they give themselves, in place of those in the log.
    """

    log: bool = False
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])


NO_TRUST = LogTrust()


class LoggedEnv(NamedTuple):
    """A log's data on an episode's environment.

    They are the task, the options, and the file in which its class is written.
    """

    task: Task
    options: Mapping[str, Json]
    file: str = ""


def make_logged(logged: LoggedEnv, trust: LogTrust = NO_TRUST) -> AgentEnv[Any]:
    """A new environment for a logged episode.

    Raises:
        EnvError: the log asks for more than a log may.
        NotFoundError: no environment has its id.
    """
    return make(logged.task.env, **options_of(logged, trust))


def options_of(logged: LoggedEnv, trust: LogTrust = NO_TRUST) -> dict[str, Any]:
    """The options to make a logged episode's environment with; its file, if it is trusted, is read then.

    Raises:
        EnvError: the log asks for more than a log may.
    """
    _find(logged, trust)
    if not trust.log:
        own = {name: value for name, value in logged.options.items() if name not in trust.options}
        _refuse(next(_beyond_options(env_class(logged.task.env), own), None))
        _refuse(next(_beyond_task(env_class(logged.task.env), logged.task), None))
    return {**logged.options, **trust.options}


def make_for(task: Task, options: Mapping[str, Json]) -> AgentEnv[Any]:
    """A new environment with the reader's own options, for a task out of a log.

    Raises:
        EnvError: the task names code, files or addresses.
    """
    _refuse(next(_beyond_task(env_class(task.env), task), None), "Leave it out of the log that is read here.")
    return make(task.env, **options)


def _find(logged: LoggedEnv, trust: LogTrust) -> None:
    """Have the environment registered: by the file that the log names, if it is trusted."""
    name = logged.task.env
    if is_registered(name) or not logged.file:
        return
    if not trust.log:
        raise EnvError(
            f"The log's environment {name} is written in {logged.file}, and a file that a log names is code.",
            f"Name the file yourself (--env {logged.file.rpartition(':')[0]}), or say that you trust the log: --trust-log.",
        )
    found = resolve(logged.file)
    if found != name:
        raise EnvError(
            f"{logged.file} is the environment {found}, and the log's is {name}.",
            "Name its file: --env FILE.",
        )


class _Beyond(NamedTuple):
    """Something that a log may not say: the option, its value, why, and how to give it oneself."""

    where: str
    value: Json
    why: str
    own: str = ""


def _refuse(found: _Beyond | None, remedy: str = "") -> None:
    if found is None:
        return
    raise EnvError(
        f"The log asks for {found.where} {found.value!r:.80}, which {found.why}. A log is only read.",
        remedy or f"If you trust whoever wrote it, say so: --trust-log{found.own}.",
    )


def _beyond_options(cls: type[AgentEnv[Any]], options: Mapping[str, Json]) -> Iterator[_Beyond]:
    guarded, defaults = _declared(cls, "guarded_options"), _defaults(cls)
    for name, value in options.items():
        guard = guarded.get(name, _UNDECLARED)
        if not _same(value, defaults.get(name)) and _stands_against(guard, value):
            own = f"; or give it yourself: --env-option {name}=…"
            yield _Beyond(f"the option {name}:", reaching(value) or value, guard.does, own)


def _beyond_task(cls: type[AgentEnv[Any]], task: Task) -> Iterator[_Beyond]:
    for name, guard in _declared(cls, "guarded_tasks").items():
        value: Json = task.options
        for key in name.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value not in (None, "") and _stands_against(guard, value):
            yield _Beyond(f"a task with {name}:", reaching(value) or value, guard.does)


_UNDECLARED = Guard("names a file, an address, code or a variable", words=True)


def _stands_against(guard: Guard, value: Json) -> bool:
    return not guard.words or reaching(value) is not None


def reaching(value: Json, depth: int = 0) -> str | None:
    """The text in a value that has the form of a path, an address, code or a reference; None where there is none.

    >>> reaching({"a": ["plain words", 3]}), reaching(["x", "https://host"]), reaching("code:/tmp/x"), reaching("${KEY}")
    (None, 'https://host', 'code:/tmp/x', '${KEY}')
    """
    if isinstance(value, str):
        return value if _REACHING.search(value) else None
    if depth > _DEEPEST:
        return "a value nested deeper than 40"
    inside = [*value, *value.values()] if isinstance(value, Mapping) else value
    if not isinstance(inside, (list, tuple)):
        return None
    return next((said for item in inside if (said := reaching(item, depth + 1)) is not None), None)


def _same(value: Json, default: Json) -> bool:
    return type(value) is type(default) and value == default


def _declared(cls: type[AgentEnv[Any]], name: str) -> dict[str, Guard]:
    """Return the guards that a class and those that it inherits from declare."""
    return {key: guard for base in reversed(cls.__mro__) for key, guard in vars(base).get(name, {}).items()}


def _defaults(cls: type[AgentEnv[Any]]) -> dict[str, Json]:
    """Return the default of each option; the most derived class that names it decides."""
    found: dict[str, Json] = {}
    for base in reversed(cls.__mro__):
        made = vars(base).get("__init__")
        if inspect.isfunction(made):
            found |= {name: one.default for name, one in inspect.signature(made).parameters.items()}
    return found
