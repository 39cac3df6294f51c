"""One server over a folder of runs and evaluations, for all tests that only look."""

from __future__ import annotations

import asyncio
import http.client
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import places as made

from turnwise.trainers.view.server import ViewServer, opened

TOKEN = "the-token"


class Answer(NamedTuple):
    status: int
    text: str
    headers: dict[str, str]


class Site:
    """A server in a thread, and requests to it."""

    def __init__(self, server: ViewServer) -> None:
        self.server = server
        self.port = server.guard.door.port
        self.address = f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        path: str,
        form: list[tuple[str, str]] | None = None,
        *,
        cookie: str | None = TOKEN,
        **headers: str,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if cookie is not None:
            sent["Cookie"] = f"{self.server.guard.cookie}={cookie}"
        if form is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request("GET" if form is None else "POST", path, urlencode(form) if form else None, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return Answer(answer.status, text, dict(answer.getheaders()))

    def get(self, path: str) -> str:
        answer = self.ask(path)
        assert answer.status == 200, answer.text
        return answer.text

    def place(self, name: str) -> str:
        """The address of a place by its name."""
        found = asyncio.run_coroutine_threadsafe(self.server.places(), self.loop).result(30)
        return f"/p/{next(place.id for place in found if place.name == name)}"

    def until(self, path: str, sign: str) -> str:
        """The page, as soon as it says something."""
        deadline = time.monotonic() + 120
        while sign not in (text := self.get(path)):
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
        return text

    loop: asyncio.AbstractEventLoop


@contextmanager
def serving(folders: list[Path], cache: Path) -> Iterator[Site]:
    ready, sites = threading.Event(), []
    done = asyncio.Event()

    async def main() -> None:
        async with opened(folders, token=TOKEN, cache=cache) as server:
            site = Site(server)
            site.loop = asyncio.get_running_loop()
            sites.append(site)
            ready.set()
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield sites[0]
    finally:
        sites[0].loop.call_soon_threadsafe(done.set)
        thread.join(30)


@pytest.fixture(scope="package")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("viewed")
    made.evaluation(folder / "first")
    made.evaluation(folder / "second", "mix:gold=0.7,random=0.3")
    made.run(folder / "nested" / "trained")
    made.branched(folder / "branched")
    made.hostile(folder / f"odd {made.HOSTILE[:8]} name".replace("/", "_"))
    return folder


@pytest.fixture(scope="package")
def site(folder, tmp_path_factory) -> Iterator[Site]:
    benchmarks = Path(__file__).resolve().parents[2] / "benchmarks" / "learning" / "shop-short.json"
    with serving([folder, benchmarks], tmp_path_factory.mktemp("cache")) as site:
        yield site


@pytest.fixture
def served():
    """A server over folders of one test's own."""
    return serving
