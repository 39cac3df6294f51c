"""Servers of torch engines: in threads of this process, for most tests, and in processes that can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from aiohttp import web
from answers import moved

from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.guard import read_token
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.remote.own_token import token_of
from turnwise.agents.remote.serve import listen, url_of
from turnwise.agents.remote.server import EngineServer

CONTEXT = 256


class Served:
    """A server in a thread of this process, with a loop of its own."""

    def __init__(
        self, model: Path, *, token: str = "", port: int = 0, server: type[EngineServer] = EngineServer
    ) -> None:
        self.engine = TorchEngine(str(model), context_length=CONTEXT, max_sequences=16)
        self.door: socket.socket = listen("127.0.0.1", port, "")
        self._file = contextlib.ExitStack()
        token = token or read_token(self._file.enter_context(token_of(self.door, "")))
        self.server = server(self.engine, kind="torch", model=str(model), token=token)
        self.url = url_of(self.door)
        self.port = self.door.getsockname()[1]
        self._up, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._up.wait(60)

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._file.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(self.server.app(), handler_cancellation=True, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.SockSite(runner, self.door).start())
        self._up.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self.engine.close()
        self._loop.close()


@pytest.fixture
def served(tied_checkpoint: Path) -> Iterator[Callable[..., Served]]:
    """``served()``: one more server of the small model."""
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> Served:
            server = Served(**{"model": tied_checkpoint, **options})
            stack.callback(server.close)
            return server

        yield start


@pytest.fixture
def fleet() -> Iterator[Callable[..., RemoteFleet]]:
    """``fleet(url, …)``: engines elsewhere as one."""
    with contextlib.ExitStack() as stack:

        def start(*urls: str, **options: Any) -> RemoteFleet:
            found = RemoteFleet(urls, context_length=CONTEXT, options=RemoteOptions(**options))
            stack.callback(found.close)
            return found

        yield start


@pytest.fixture
def alone(tied_checkpoint: Path) -> Iterator[TorchEngine]:
    """The engine in this process that the others are compared with."""
    engine = TorchEngine(str(tied_checkpoint), context_length=CONTEXT, max_sequences=16)
    yield engine
    engine.close()


@pytest.fixture
def lora(random_model: Callable[..., Any]) -> Callable[..., Any]:
    """``lora(seed, …)``: a model with adapters that do something."""

    def make(seed: int = 0, *, tied: bool = True, **options: Any) -> Any:
        given = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
        peft = pytest.importorskip("peft")
        model: Any = peft.get_peft_model(random_model(tied=tied, seed=3), peft.LoraConfig(**given | options))
        moved(model, seed)
        return model

    return make
