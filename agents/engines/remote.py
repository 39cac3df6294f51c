"""Engines in other processes or on other machines, as an engine of this one (docs/engines.md)."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from turnwise.agents.remote.client import Address, RemoteServer, parse_url
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.guard import read_token
from turnwise.agents.remote.lease import LeaseHolder
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.remote.roster import Roster
from turnwise.errors import EngineError, MissingDependencyError
from turnwise.registry import component


@component(
    "engine", "remote", about="Engines that run elsewhere: `turnwise serve-engine`.", requires=("aiohttp",)
)
class RemoteEngine(RemoteFleet):
    """Samples with engines that run elsewhere, one or many (an :class:`~turnwise.agents.core.Engine`).

    Args:
        model: that the engines were started with, or one of its shape; they are told of its weights by the trainer.
        device: is theirs to choose.
        context_length: longest prompt plus answer, in tokens.
        max_sequences: is theirs to choose.
        urls: of the engines, such as ``http://127.0.0.1:8700``.
        urls_file: a file with more of them, one a line. While a run goes on, engines join and leave by it.
        token_file: holds the token that the engines were started with.
        publish_host: this machine's address as engines on other machines reach it.
        silence_s: an engine that has work and says nothing for so long is taken out.
        patience_s: how long an answer waits while no engine serves, and a start while none is there.
        publish_s: what an engine may take to fetch weights, and to load them.
        publish: how weights get there (``scale.publish`` of a recipe).
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        device: str = "auto",
        context_length: int = 0,
        max_sequences: int = 64,
        urls: list[str] | None = None,
        urls_file: str = "",
        token_file: str = "",
        publish_host: str = "127.0.0.1",
        silence_s: float = 60.0,
        patience_s: float = 120.0,
        publish_s: float = 600.0,
        publish: str = "auto",
    ) -> None:
        if not urls and not urls_file:
            raise MissingDependencyError(
                "No engine elsewhere is named.",
                "Start one (`turnwise serve-engine MODEL`) and give its address: engine.options.urls.",
            )
        options = RemoteOptions(
            read_token(token_file), urls_file, publish_host, silence_s, patience_s, publish_s, publish,
            vocabulary_of(model),
        )  # fmt: skip
        super().__init__(urls or [], context_length=context_length, options=options)
        self.model = str(model)

    @staticmethod
    def check(
        run: str, *, urls: list[str] | None = None, urls_file: str = "", token_file: str = "", **_: Any
    ) -> None:
        """See that no other run has these engines, before anything is spent on a run of this name.

        Raises:
            EngineError: another run has one of them.
        """
        holder = LeaseHolder(f"{socket.gethostname()}:{run}", run)
        for url in dict.fromkeys([*(urls or list[str]()), *Roster(urls_file, parse_url).first()]):
            server = RemoteServer(Address(parse_url(url), read_token(token_file)))
            try:
                server.look()
            except EngineError:  # it may come later
                continue
            holder.check(server)


def vocabulary_of(model: str | os.PathLike[str]) -> int:
    """Read the number of a model's tokens from its folder; 0 where it does not say, or there is none."""
    try:
        config = json.loads((Path(model) / "config.json").read_text("utf-8"))
        size = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    except (OSError, ValueError, AttributeError):
        return 0
    return size if type(size) is int and size > 0 else 0
