"""Running coroutines for callers that have no event loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from turnwise.errors import TurnwiseError

Args = ParamSpec("Args")
Result = TypeVar("Result")


def blocking(function: Callable[Args, Coroutine[Any, Any, Result]]) -> Callable[Args, Result]:
    """``name_async`` as ``name``: it runs an event loop of its own until the result is there.

    Args:
        function: a coroutine function whose name ends in ``_async``.

    Returns:
        A function with the same arguments and documentation. Where a loop is running already (a notebook, an async
        function) it raises one error, which names the coroutine function to await instead.
    """
    name = function.__name__.removesuffix("_async")

    @functools.wraps(function)
    def call(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        refuse_running_loop(name)
        return asyncio.run(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    return call


def refuse_running_loop(name: str) -> None:
    """Refuse to block an event loop that is running in this thread.

    >>> refuse_running_loop("evaluate")
    >>> async def notebook() -> None:
    ...     refuse_running_loop("evaluate")
    >>> asyncio.run(notebook())
    Traceback (most recent call last):
    turnwise.errors.TurnwiseError: An event loop is running here (a notebook or an async function), so evaluate() cannot wait for its result.
    → Write `await turnwise.evaluate_async(…)`, with the same arguments.

    Args:
        name: of the function that would block; ``turnwise`` has a coroutine function ``{name}_async`` beside it.

    Raises:
        TurnwiseError: a loop is running.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise TurnwiseError(
        f"An event loop is running here (a notebook or an async function), so {name}() cannot wait for its result.",
        f"Write `await turnwise.{name}_async(…)`, with the same arguments.",
    )
