"""Engines join and leave while answers are on their way: no answer changes, and none is counted twice."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch")

from answers import LONG, PROMPTS, assert_same, sample, wait_for

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.engines.registry import check_free
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.remote.lease import LeaseHolder
from turnwise.agents.remote.roster import Roster
from turnwise.agents.remote.server import EngineServer
from turnwise.errors import EngineError

Fleet = Callable[..., Any]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnwise.agents.remote.roster.GONE_S", 0.3)


class Listed:
    """The file of engines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *lines: str) -> None:
        aside = self.path.with_suffix(".new")
        aside.write_text("".join(f"{line}\n" for line in lines))
        aside.replace(self.path)


@pytest.fixture
def listed(tmp_path: Path) -> Listed:
    return Listed(tmp_path / "engines.txt")


def test_a_line_of_the_list_ends_at_a_line_feed_alone(listed: Listed):
    listed.path.write_bytes("\ufeff# as of Monday\u2028or\x0cso\r\na\r\n\n  b\x85c\n".encode())
    assert Roster(str(listed.path), str).first() == ["a", "b\x85c"]


class Counting(EngineServer):
    """Counts the answers that it was asked for, by their ids."""

    asked: ClassVar[Counter[str]] = Counter()

    def _answer(self, body: Any) -> Any:
        self.asked[body.request_id] += 1
        return super()._answer(body)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found = Counter[str]()
    monkeypatch.setattr(Counting, "asked", found)
    return found


def names(remote: Any) -> set[str]:
    return {row.name for row in remote.health()}


def serving(remote: Any) -> set[str]:
    return {row.name for row in remote.health() if row.serving}


class Holding:
    """One answer of an engine that stops after five tokens, and the thread that waits for it."""

    def __init__(self, remote: Any, server: Any) -> None:
        self.found: list[Completion] = []
        stream = server.engine.stream

        async def held(*given: Any, heard: Any, **named: Any) -> Completion:
            def counted(token: int, logprob: float, version: int) -> None:
                heard(token, logprob, version)
                places.append(token)
                if len(places) == 5:
                    server.engine.pause()

            places: list[int] = []
            return await stream(*given, heard=counted, **named)

        server.engine.stream = held
        self._thread = threading.Thread(target=lambda: self.found.extend(sample(remote, PROMPTS[:1])))
        self._thread.start()
        wait_for(lambda: any(len(answer.ids) == 5 for answer in list(server.server._answers.values())))
        server.engine.stream = stream

    def end(self) -> list[Completion]:
        self._thread.join(60)
        return self.found


@pytest.mark.slow
def test_engines_come_and_go_while_answers_are_sampled(
    served: Any, fleet: Fleet, alone: TorchEngine, listed: Listed, asked: Counter[str]
):
    first, second, third = (served(server=Counting) for _ in range(3))
    listed.write(first.url)
    remote = fleet(urls_file=str(listed.path))
    weights = {name: tensor + 0.02 for name, tensor in alone.tensors()}
    remote.load_weights(weights.items(), 4)
    alone.load_weights(weights.items(), 4)

    async def play() -> list[Completion]:
        jobs = [
            asyncio.ensure_future(
                remote.generate(PROMPTS[n % len(PROMPTS)], LONG, stop_ids=(), seed=n % len(PROMPTS))
            )
            for n in range(48)
        ]
        for lines in ([first, second], [second, third], [third], [first, third]):
            listed.write(*(server.url for server in lines))
            here = {server.name for server in lines}
            await asyncio.to_thread(wait_for, lambda here=here: serving(remote) == here)
            jobs += [
                asyncio.ensure_future(remote.generate(p, LONG, stop_ids=(), seed=i))
                for i, p in enumerate(PROMPTS)
            ]
        return list(await asyncio.gather(*jobs))

    found = asyncio.run(play())
    assert_same(found, sample(alone) * (len(found) // len(PROMPTS)))
    assert len(asked) == len(found), "an answer was lost, or one was asked for twice"
    assert set(asked.values()) == {1}
    assert all(server.engine.version == 4 for server in (first, second, third))


@pytest.mark.slow
def test_who_leaves_finishes_what_it_has_in_hand_and_is_free_then(
    served: Any, fleet: Fleet, alone: TorchEngine, listed: Listed, asked: Counter[str]
):
    going, staying = served(server=Counting), served(server=Counting)
    listed.write(going.url)
    remote = fleet(urls_file=str(listed.path))
    weights = {name: tensor + 0.02 for name, tensor in alone.tensors()}
    remote.load_weights(weights.items(), 1)
    alone.load_weights(weights.items(), 1)
    holding = Holding(remote, going)
    listed.write(staying.url)
    wait_for(lambda: serving(remote) == {staying.name} == names(remote))
    others = LeaseHolder(name="another run")
    stranger = type(remote._serving.router.leaving[going.name])(
        remote._serving.router.leaving[going.name].address
    )
    assert not others.beat(stranger), "it is ours while it samples for us"
    assert_same(sample(remote, PROMPTS[:2]), sample(alone, PROMPTS[:2]))
    going.engine.resume()
    assert_same(holding.end(), sample(alone, PROMPTS[:1]))
    assert not [name for name, count in asked.items() if count > 1]
    wait_for(lambda: others.beat(stranger))


@pytest.mark.slow
def test_who_leaves_and_says_nothing_more_is_not_waited_for(
    served: Any, fleet: Fleet, alone: TorchEngine, listed: Listed
):
    going, staying = served(), served()
    listed.write(going.url, staying.url)
    remote = fleet(urls_file=str(listed.path), silence_s=1.5)
    remote.leave(staying.name)
    holding = Holding(remote, going)
    remote.join(staying.url)
    listed.write(staying.url)
    wait_for(lambda: names(remote) == {staying.name})
    assert_same(holding.end(), sample(alone, PROMPTS[:1]))
    going.engine.resume()


def test_who_comes_back_while_it_finishes_is_one_engine(
    served: Any, fleet: Fleet, alone: TorchEngine, listed: Listed
):
    server = served()
    listed.write(server.url)
    remote = fleet(urls_file=str(listed.path))
    remote.load_weights(((name, tensor + 0.02) for name, tensor in alone.tensors()), 1)
    holding = Holding(remote, server)
    remote.leave(server.name)
    weights = {name: tensor + 0.04 for name, tensor in alone.tensors()}
    remote.load_weights(weights.items(), 2, kv="recompute")
    assert server.engine.version == 1, "it has left"
    remote.join(server.url)
    wait_for(lambda: serving(remote) == {server.name})
    (answer,) = holding.end()
    assert [span.version for span in answer.versions] == [1, 2]
    alone.load_weights(weights.items(), 2)
    assert_same(sample(remote), sample(alone))
    assert remote._serving.router.servers() == [remote._serving.router.serving[server.name]]
    assert remote._serving.router.serving[server.name].run, "the lease is held"


@pytest.mark.slow
def test_a_file_that_cannot_be_read_sends_nobody_away(
    served: Any, fleet: Fleet, listed: Listed, monkeypatch: pytest.MonkeyPatch
):
    server, given = served(), served()
    listed.write(server.url, given.url)
    remote = fleet(given.url, urls_file=str(listed.path))
    looks: list[object] = []
    look = remote._watch.roster.look
    monkeypatch.setattr(remote._watch.roster, "look", lambda: looks.append(found := look()) or found)
    listed.path.unlink()
    listed.path.mkdir()
    looks.clear()
    wait_for(lambda: len(looks) >= 5)
    assert names(remote) == {server.name, given.name}
    listed.path.rmdir()
    listed.write("# nobody")
    wait_for(lambda: names(remote) == {given.name})


@pytest.mark.parametrize("line", ["somewhere:8700", "http://127.0.0.1:87000"])
def test_a_line_that_is_no_address_is_told_once_and_stops_nothing(
    served: Any, fleet: Fleet, listed: Listed, caplog: pytest.LogCaptureFixture, line: str
):
    first, second = served(), served()
    listed.write(first.url)
    remote = fleet(urls_file=str(listed.path))
    listed.write(first.url, line)
    wait_for(lambda: line in caplog.text)
    listed.write(first.url, line, second.url)
    wait_for(lambda: serving(remote) == {first.name, second.name})
    assert caplog.text.count(f"'{line}' is no engine's URL") == 1
    with pytest.raises(EngineError, match="is no engine's URL"):
        fleet(urls_file=str(listed.path))


def test_an_engine_that_holds_less_than_the_others_does_not_serve(served: Any, fleet: Fleet):
    good = served()
    remote = fleet(good.url)
    short = served()
    short.engine.context_length = 128
    remote.join(short.url)
    wait_for(lambda: any("holds 128 tokens where 256" in row.cause for row in remote.health()))
    other = served()
    other.engine.dtype = "bfloat16"
    remote.join(other.url)
    wait_for(
        lambda: any("computes in bfloat16, the others in float32" in row.cause for row in remote.health())
    )
    (answer,) = sample(remote, [[1] * 200], sampling=Sampling(max_tokens=4))
    assert len(answer.token_ids) == 4
    assert serving(remote) == {good.name}


@pytest.mark.slow
def test_engines_of_the_file_are_asked_for_before_a_run_begins(
    served: Any, fleet: Fleet, alone: TorchEngine, listed: Listed
):
    server = served()
    remote = fleet(server.url)
    remote.belongs_to("runs/first")
    remote.load_weights(alone.tensors(), 1)
    listed.write(server.url)
    with pytest.raises(EngineError, match="used by another run: runs/first"):
        check_free("remote", {"urls_file": str(listed.path)}, "runs/second")
