"""Policies of your own: a function of the history, or an object with a policy's attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

from turnwise.agents.core import History, Policy, Reply
from turnwise.agents.execution.threads import in_thread
from turnwise.agents.policies.options import PolicyOptions
from turnwise.blame import describe, written_at
from turnwise.envs.messages import Message
from turnwise.envs.sources import load_module, look_here
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.registry import component

_NEEDED = ("name", "version", "act", "close")
_HOW = (
    "Give a spec such as scripted:gold (`turnwise list policies`), a function of the history that returns a Reply, a"
    " Message or a text (async or not), or an object with name, version, async act(history) and close()"
    " (docs/your-own-agent.md)."
)

PolicyLike: TypeAlias = Policy | Callable[[History], Any] | str
"""Anything that can play: a policy, a function of the history (async or not), or a spec such as ``scripted:gold``."""


class FunctionPolicy:
    """A function as a policy. What is not async runs in a thread, so that others play meanwhile.

    Args:
        act: from the :class:`History` to a :class:`Reply`, a message or its text.
        name: under which it is reported; the function's own unless given.
        seconds: after which a function that is not async is given up.
    """

    version = 0

    def __init__(self, act: Callable[[History], Any], name: str = "", *, seconds: float = 300.0) -> None:
        self.name = name or getattr(act, "__qualname__", type(act).__name__)
        self._act = act
        self._seconds = seconds

    async def act(self, history: History) -> Reply:
        if inspect.iscoroutinefunction(self._act):
            said = await self._act(history)
        else:
            said = await in_thread(f"the policy {self.name}", self._seconds, self._act, history)
            said = await said if inspect.isawaitable(said) else said
        return _reply(said, self.name, self._act)

    def close(self) -> None:
        """Nothing is held."""


def as_policy(given: object) -> Policy:
    """A policy as it is, and a function as a :class:`FunctionPolicy`.

    Raises:
        TurnwiseError: it is neither, with what a policy needs.
    """
    if isinstance(given, type):
        raise TurnwiseError(f"{given.__name__} is a class and no policy.", f"Make one: {given.__name__}().")
    if hasattr(given, "act"):
        missing = [name for name in _NEEDED if not hasattr(given, name)]
        if missing:
            raise TurnwiseError(f"{type(given).__name__} is no policy: it has no {', '.join(missing)}.", _HOW)
        return cast(Policy, given)
    if callable(given):
        _check_takes_history(given)
        return FunctionPolicy(given)
    raise TurnwiseError(f"{_shown(given)} is no policy.", _HOW)


def _check_takes_history(act: Callable[..., Any]) -> None:
    try:
        inspect.signature(act).bind(None)
    except TypeError as error:
        place, name = written_at(act), getattr(act, "__qualname__", type(act).__name__)
        raise TurnwiseError(
            f"{name} cannot be called with a history alone: {error}{place and f' ({place})'}.",
            f"Write def {name}(history), and give what else it has a default.",
        ) from None
    except ValueError:
        return  # a builtin that does not say what it takes


def load_policy(target: str) -> Policy:
    """The policy at ``module:object`` or ``path/to/file.py:object``; a class is made without arguments.

    Raises:
        TurnwiseError: it is not there, cannot be imported or is no policy.
    """
    module, name = _module_and_name(target)
    if not hasattr(module, name):
        file: str | None = getattr(module, "__file__", None)
        where = Path(file).name if file else module.__name__
        raise NotFoundError(f"policy in {where} called", name, _own(module))
    found = getattr(module, name)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            raise TurnwiseError(
                f"{target} cannot be made: {describe(error)}.", "It is called without arguments."
            ) from error
    policy = as_policy(found)
    return FunctionPolicy(found, f"python:{target}") if isinstance(policy, FunctionPolicy) else policy


def source_of(target: str) -> list[Path]:
    """The file in which a policy of one's own is written."""
    module, _ = _module_and_name(target)
    return [Path(module.__file__)] if module.__file__ else []


@component("policy", "python", form="python:MODULE:OBJECT", files=source_of)
def own_policy(target: str, options: PolicyOptions) -> Policy:
    """A function or policy of your own; or FILE.py:OBJECT."""
    return load_policy(target)


def _module_and_name(target: str) -> tuple[ModuleType, str]:
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise TurnwiseError(
            f"The policy python:{target} is not complete.",
            "Write python:MODULE:OBJECT or python:FILE.py:OBJECT.",
        )
    look_here()
    return load_module(where), name


def _own(module: ModuleType) -> list[str]:
    """List the names that are written in a module and could play."""
    return [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and (hasattr(value, "act") or getattr(value, "__module__", "") == module.__name__)
    ]


def _reply(said: object, name: str, act: object) -> Reply:
    if isinstance(said, Reply):
        return said
    if isinstance(said, str):
        return Reply(Message("assistant", said))
    if isinstance(said, Message) and said.role == "assistant":
        return Reply(said)
    place = written_at(act)
    what = f"a message of the role {said.role!r}" if isinstance(said, Message) else _shown(said)
    raise TurnwiseError(
        f"The policy {name} returned {what}{place and f' ({place})'}.",
        "It must return a Reply, a Message of the role 'assistant', or a text.",
    )


def _shown(value: object) -> str:
    return f"{value!r:.60}" if value is None else f"{value!r:.60} (a {type(value).__name__})"
