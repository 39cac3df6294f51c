"""The watch over engines goes on whatever one of them is or says, and a start waits for those that are not there yet."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from answers import PROMPTS, assert_same, sample, wait_for

from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.remote.client import Address, RemoteServer, parse_url
from turnwise.agents.remote.lease import LeaseHolder
from turnwise.agents.remote.protocol import LEASE
from turnwise.agents.remote.serve import listen
from turnwise.agents.remote.server import EngineServer
from turnwise.errors import EngineError

Fleet = Callable[..., Any]


def shifted(engine: TorchEngine, by: float) -> dict[str, Any]:
    """Other weights of the same shape."""
    return {name: tensor + by for name, tensor in engine.tensors()}


def serving(remote: Any) -> set[str]:
    return {row.name for row in remote.health() if row.serving}


def cause(remote: Any, name: str) -> str:
    return next(row.cause for row in remote.health() if row.name == name)


class Foreign:
    """A service that is no engine and answers whatever it is asked."""

    def __init__(self, port: int = 0) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"status": "ok"}')

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def foreign() -> Iterator[Callable[..., Foreign]]:
    with contextlib.ExitStack() as stack:

        def start(port: int = 0) -> Foreign:
            made = Foreign(port)
            stack.callback(made.close)
            return made

        yield start


# --- the watch goes on -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "somewhere:8700",
        "http://127.0.0.1:87000",
        "http://127.0.0.1:0",
        "http://127.0.0.1:eighty",
        "http://[::1:80",
        "http://a..b:80",
        "http://me@127.0.0.1:80",
        "http://127.0.0.1:80/?a=b",
    ],
)
def test_an_address_that_cannot_be_read_is_one_error(url: str):
    with pytest.raises(EngineError, match="is no engine's URL") as refused:
        parse_url(url)
    assert refused.value.remedy == "Write http://HOST:PORT."


def test_a_port_that_is_none_cannot_be_listened_on():
    with pytest.raises(EngineError, match=r"Cannot listen on 127\.0\.0\.1:87000"):
        listen("127.0.0.1", 87000, "")


def test_what_is_no_engine_is_named_whatever_it_is_asked(foreign: Callable[..., Foreign]):
    server = RemoteServer(Address(foreign().url))
    for ask in (server.look, lambda: LeaseHolder().beat(server)):
        with pytest.raises(EngineError, match="is no engine of this version"):
            ask()
    with pytest.raises(EngineError, match="scored 0 of 1 tokens"):
        server.score([1, 1])


@pytest.mark.slow
def test_another_service_that_takes_an_engines_port_ends_no_watch(
    served: Any,
    fleet: Fleet,
    alone: TorchEngine,
    foreign: Callable[..., Foreign],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("turnwise.agents.remote.watch.BEAT_S", 0.1)
    gone, stays, later = served(), served(), served()
    remote, weights = fleet(gone.url, stays.url), shifted(alone, 0.02)
    remote.load_weights(weights.items(), 1)
    gone.close()
    other = foreign(gone.port)
    wait_for(lambda: other.asked.count(LEASE) >= 2)
    remote.join(later.url)
    wait_for(lambda: later.name in serving(remote))
    alone.load_weights(weights.items(), 1)
    assert_same(sample(remote), sample(alone))
    wait_for(lambda: "no engine of this version" in cause(remote, gone.name))


def test_an_engine_that_cannot_be_dealt_with_is_out_and_ends_no_watch(
    served: Any, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("turnwise.agents.remote.watch.BEAT_S", 0.1)
    first, odd, later = served(), served(), served()
    remote, look = fleet(first.url), RemoteServer.look

    def looked(server: RemoteServer) -> Any:
        if server.name == odd.name:
            raise RuntimeError("nobody thought of this")
        return look(server)

    monkeypatch.setattr(RemoteServer, "look", looked)
    remote.join(odd.url)
    wait_for(lambda: "nobody thought of this" in cause(remote, odd.name))
    assert f"the engine {odd.name} cannot be dealt with" in caplog.text
    remote.join(later.url)
    wait_for(lambda: serving(remote) == {first.name, later.name})


def test_without_a_watch_nothing_is_sampled(served: Any, fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    remote = fleet(served().url)
    monkeypatch.setattr(remote._watch, "_follow_roster", lambda: 1 / 0)
    wait_for(remote._watch.task.done)
    with pytest.raises(EngineError, match="Nobody watches the engines any more: ZeroDivisionError"):
        sample(remote, PROMPTS[:1])


def test_an_address_that_is_not_this_machines_is_named_when_weights_are_to_be_fetched_there(
    served: Any, fleet: Fleet, alone: TorchEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("turnwise.agents.remote.transfer.locality", lambda: "elsewhere")
    remote = fleet(served().url, publish_host="192.0.2.1")
    with pytest.raises(EngineError, match=r"No engine took weights 1: .* from 192\.0\.2\.1") as refused:
        remote.load_weights(shifted(alone, 0.02).items(), 1)
    assert "engine.options.publish_host" in refused.value.remedy


class DeafToPause(EngineServer):
    """Is wedged as soon as weights are to come."""

    async def _pause(self, request: Any) -> Any:
        await asyncio.Event().wait()


@pytest.mark.slow
def test_an_engine_that_is_wedged_when_weights_are_published_holds_nobody_up_for_long(
    served: Any, fleet: Fleet, alone: TorchEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("turnwise.agents.remote.watch.FACTS_S", 1.0)
    wedged, good = served(server=DeafToPause), served()
    remote = fleet(wedged.url, good.url, silence_s=1.0, publish_s=60.0)
    began = time.monotonic()
    remote.load_weights(shifted(alone, 0.02).items(), 1)
    assert time.monotonic() - began < 30.0
    assert serving(remote) == {good.name}
    assert "does not answer /pause" in cause(remote, wedged.name)


# --- a start waits -----------------------------------------------------------------------------------


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.mark.slow
def test_a_start_waits_for_an_engine_that_is_not_there_yet(
    served: Any, fleet: Fleet, beside: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
):
    early = served()
    early.close()
    opening = beside.submit(fleet, early.url)
    wait_for(lambda: f"waiting up to 120 s for an engine: {early.name}" in caplog.text)
    served(port=early.port)
    assert serving(opening.result(60)) == {early.name}


def test_a_start_waits_for_the_first_address_in_the_file_of_engines(
    served: Any, fleet: Fleet, beside: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    server, listed = served(), tmp_path / "engines.txt"
    opening = beside.submit(fleet, urls_file=str(listed))
    wait_for(lambda: f"for an engine: an address in {listed}" in caplog.text)
    listed.write_text(f"{server.url}\n")
    assert serving(opening.result(60)) == {server.name}
    with pytest.raises(EngineError, match="None of the engines serves") as refused:
        fleet(urls_file=str(tmp_path / "none.txt"), patience_s=0.0)
    assert "none.txt" in refused.value.remedy


def test_a_start_does_not_wait_where_the_token_is_wrong(served: Any, fleet: Fleet):
    with pytest.raises(EngineError, match="None of the engines serves") as refused:
        fleet(served(token="0123456789abcdef-token").url, patience_s=3600.0)
    assert "token" in refused.value.remedy
