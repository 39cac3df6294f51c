"""An engine of this process, served to others (`turnwise serve-engine`): any that is registered and has what a server needs."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Callable, Mapping
from typing import Any

from turnwise.agents.engines.registry import open_engine
from turnwise.errors import EngineError
from turnwise.registry import get_component


def check_servable(kind: str) -> None:
    """Refuse an engine that has neither what a server needs of it nor a server of its own.

    Raises:
        NotFoundError: no engine has this name.
        EngineError: it lacks methods of :class:`turnwise.agents.remote.server.ServedEngine`.
    """
    from turnwise.agents.remote.server import ServedEngine

    engine = get_component("engine", kind).target
    needed = [
        name for name, value in vars(ServedEngine).items() if inspect.isfunction(value) and name[0] != "_"
    ]
    missing = [name for name in needed if not hasattr(engine, name)]
    if missing and not hasattr(engine, "serve"):
        raise EngineError(
            f"The engine {kind!r} cannot be served to others: it has no {', '.join(missing)}.",
            "Serve one that has (`turnwise list engine`), such as torch; docs/extending/engine.md says what is needed.",
        )


def serve_registered(
    kind: str,
    model: str,
    door: socket.socket,
    token_file: str,
    ready: Callable[[str], None],
    options: Mapping[str, Any],
) -> int:
    """Serve until this process is told to end; by the engine's own ``serve`` where it has one.

    Args:
        kind: the engine's name.
        model: a folder.
        door: the socket at which callers are expected.
        token_file: holds the token that they must have.
        ready: is told the address as soon as it answers.
        options: ``device``, ``dtype``, ``context_length``, ``max_sequences`` and the engine's own.

    Returns:
        The exit status.

    Raises:
        RecipeError: an option is unknown or of the wrong type.
    """
    from turnwise.agents.remote.guard import read_token
    from turnwise.agents.remote.serve import serve
    from turnwise.agents.remote.server import EngineServer

    entry = get_component("engine", kind)
    own = getattr(entry.target, "serve", None)
    if own is not None:
        return own(model, door, token_file, ready, **options)
    given = {
        name: value
        for name, value in options.items()
        if (name, value) != ("dtype", "auto") or name in entry.options
    }
    engine = open_engine(kind, model, **given)
    host = door.getsockname()[0]
    server = EngineServer(engine, kind=kind, model=model, token=read_token(token_file), host=host)
    asyncio.run(serve(server, door, ready))
    return 0
