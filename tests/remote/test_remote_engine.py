"""Engines elsewhere answer as one in this process does, take weights, and refuse strangers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from answers import LONG, PROMPTS, assert_same, sample

from turnwise.agents.core import Completion, Sampling, VersionSpan
from turnwise.agents.engines.registry import open_engine
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.remote.client import Address
from turnwise.agents.remote.guard import read_token
from turnwise.agents.remote.protocol import GENERATE
from turnwise.agents.remote.serve import listen
from turnwise.errors import EngineError, MissingDependencyError
from turnwise.trainers.learn.sync import check_canary, push_weights

Fleet = Callable[..., Any]
TOKEN = "0123456789abcdef-token"


def shifted(engine: TorchEngine, by: float) -> dict[str, Any]:
    """Other weights of the same shape."""
    return {name: tensor + by for name, tensor in engine.tensors()}


@pytest.mark.parametrize("engines", [1, 2])
def test_engines_elsewhere_sample_what_one_in_this_process_does(
    served: Any, fleet: Fleet, alone: TorchEngine, engines: int
):
    remote = fleet(*(served().url for _ in range(engines)))
    free = sample(alone)
    assert_same(sample(remote), free)
    stop = free[0].token_ids[3]
    assert_same(sample(remote, stop_ids=(stop,)), sample(alone, stop_ids=(stop,)))
    greedy = Sampling(temperature=0.0, max_tokens=5)
    assert_same(sample(remote, sampling=greedy), sample(alone, sampling=greedy))
    assert all(row.answers for row in remote.health())


def test_a_prompt_that_leaves_no_room_is_refused(served: Any, fleet: Fleet):
    remote = fleet(served().url)
    with pytest.raises(EngineError, match="does not fit a context of 256"):
        sample(remote, [[1] * 256])
    (answer,) = sample(remote, [[1] * 250], sampling=Sampling(max_tokens=100))
    assert len(answer.token_ids) == 6


def test_weights_reach_every_engine_and_are_attested(served: Any, fleet: Fleet, random_model: Any):
    servers = [served(), served()]
    remote, model = fleet(*(server.url for server in servers)), random_model(seed=3)
    report = push_weights(model, remote, 7)
    assert report.max_logp_gap < 1e-4
    assert {server.engine.version for server in servers} == {remote.version} == {7}
    assert all(answer.versions == (VersionSpan(0, 7),) for answer in sample(remote))


def test_the_canary_sees_one_wrong_engine_of_two(served: Any, fleet: Fleet, random_model: Any):
    servers = [served(), served()]
    remote, model = fleet(*(server.url for server in servers)), random_model(seed=3)
    push_weights(model, remote, 1)
    servers[1].engine.load_weights(shifted(servers[1].engine, 0.05).items(), 1)
    with pytest.raises(EngineError, match="runs other weights"):
        check_canary(model, remote, 1)


def test_weights_travel_by_tcp_where_no_memory_is_shared(
    served: Any, fleet: Fleet, alone: TorchEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("turnwise.agents.remote.transfer.locality", lambda: "elsewhere")
    remote, weights = fleet(served().url), shifted(alone, 0.02)
    remote.load_weights(weights.items(), 2)
    alone.load_weights(weights.items(), 2)
    assert_same(sample(remote), sample(alone))


@pytest.mark.parametrize("kv", ["recompute", "keep"])
def test_weights_change_in_flight_and_each_token_says_whose_it_is(
    served: Any, fleet: Fleet, alone: TorchEngine, kv: Any
):
    server = served()
    hold_at(server.engine, 5)
    remote, weights = fleet(server.url), shifted(alone, 0.02)

    async def slowly() -> Completion:
        task = asyncio.ensure_future(
            remote.generate(PROMPTS[0], Sampling(max_tokens=60), stop_ids=(), seed=1)
        )
        while not any(len(answer.ids) == 5 for answer in list(server.server._answers.values())):
            await asyncio.sleep(0.001)
        with pytest.raises(EngineError, match="in flight"):
            await asyncio.to_thread(remote.load_weights, weights.items(), 9)
        await asyncio.to_thread(remote.load_weights, weights.items(), 9, kv=kv)
        return await task

    answer = asyncio.run(slowly())
    assert answer.versions == (VersionSpan(0, 0), VersionSpan(cut := 5, 9))
    assert answer.logprobs[:cut] == pytest.approx(of(alone, answer, PROMPTS[0])[:cut], abs=1e-4)
    alone.load_weights(weights.items(), 9)
    if kv == "recompute":
        assert answer.logprobs[cut:] == pytest.approx(of(alone, answer, PROMPTS[0])[cut:], abs=1e-4)


def test_who_has_given_an_answer_up_may_publish_at_once(
    served: Any, fleet: Fleet, alone: TorchEngine, monkeypatch: pytest.MonkeyPatch
):
    server = served()
    hold_at(server.engine, 5)
    remote, busy = fleet(server.url), threading.Event()

    async def give_up() -> None:
        task = asyncio.ensure_future(remote.generate(PROMPTS[0], LONG, stop_ids=(), seed=1))
        while not any(len(answer.ids) == 5 for answer in list(server.server._answers.values())):
            await asyncio.sleep(0.001)
        remote._serving._loop.call_soon_threadsafe(busy.wait)  # it does not come to cancel anything
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    take = remote._publishing.take_leases
    monkeypatch.setattr(remote._publishing, "take_leases", lambda: (busy.set(), take()))
    try:
        remote.load_weights(shifted(alone, 0.02).items(), 1)
    finally:
        busy.set()
    assert server.engine.version == 1


def hold_at(engine: TorchEngine, count: int) -> None:
    """Have the engine wait, to be resumed, when it has sampled so many tokens of an answer."""
    stream = engine.stream

    async def held(*given: Any, heard: Any, **named: Any) -> Completion:
        def counted(token: int, logprob: float, version: int) -> None:
            heard(token, logprob, version)
            places.append(token)
            if len(places) == count:
                engine.pause()

        places: list[int] = []
        return await stream(*given, heard=counted, **named)

    engine.stream = held


def of(engine: TorchEngine, answer: Completion, prompt: Sequence[int]) -> list[float]:
    """What the engine's weights say of an answer's tokens."""
    return list(engine.score([[*prompt, *answer.token_ids]])[0][len(prompt) - 1 :])


def test_the_same_id_again_is_the_same_answer_and_samples_nothing(served: Any):
    server = served()
    body = {
        "request_id": "one",
        "token_ids": PROMPTS[0],
        "sampling_params": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 12, "seed": 4, "logprobs": 0},
        "stream": False,
    }
    first, sampled = post(server.url, GENERATE, body), server.engine._batch.clock
    assert post(server.url, GENERATE, body) == first
    assert server.engine._batch.clock == sampled
    body["token_ids"] = PROMPTS[1]
    with pytest.raises(urllib.error.HTTPError, match="409"):
        post(server.url, GENERATE, body)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"token_ids": []}, "token_ids"),
        ({"sampling_params": {"temperature": -1, "top_p": 1, "max_tokens": 1}}, "temperature"),
        ({"sampling_params": {"temperature": 1, "top_p": 1, "max_tokens": 1, "n": 4}}, "sampling_params.n"),
        ({"token_ids": [1] * 300}, "does not fit"),
    ],
)
def test_a_body_that_is_wrong_is_refused_with_its_place(served: Any, change: dict[str, Any], said: str):
    sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 4}
    body = {"request_id": "a", "token_ids": [1], "sampling_params": sampling, "stream": False, **change}
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(served().url, GENERATE, body)
    assert said in refused.value.read().decode()


def test_strangers_are_refused(served: Any, fleet: Fleet, tmp_path: Path):
    server = served(token=TOKEN)
    with pytest.raises(EngineError, match="token"):
        fleet(server.url)
    for path in (GENERATE, "/pause", "/update_weights", "/turnwise/engine"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            post(server.url, path, {}, {"Authorization": "Bearer wrong"})
    with pytest.raises(
        urllib.error.HTTPError, match="401"
    ):  # a page in a browser knows no token, and sends its origin
        post(server.url, "/pause", {}, {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"})
    assert len(sample(fleet(server.url, token=TOKEN))) == len(PROMPTS)


def test_an_open_address_needs_a_token(tmp_path: Path):
    with pytest.raises(EngineError, match="would answer, and take weights from, anyone"):
        listen("0.0.0.0", 0, "")
    short = tmp_path / "token"
    short.write_text("abc")
    with pytest.raises(EngineError, match="no secret"):
        read_token(short)


def test_a_recipes_engine_needs_an_address(tied_checkpoint: Path, served: Any):
    with pytest.raises(MissingDependencyError, match="No engine elsewhere"):
        open_engine("remote", str(tied_checkpoint))
    engine = open_engine(
        "remote", str(tied_checkpoint), device="cpu", context_length=128, urls=[served().url]
    )
    assert (engine.dtype, engine.context_length) == ("float32", 128)
    engine.close()


def test_engines_that_hold_too_little_are_refused(served: Any, tied_checkpoint: Path):
    with pytest.raises(EngineError, match="hold 256 tokens where 512"):
        open_engine("remote", str(tied_checkpoint), context_length=512, urls=[served().url])


def test_an_address_where_nobody_answers_is_named(fleet: Fleet):
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    with pytest.raises(EngineError, match="None of the engines serves") as failed:
        fleet(f"http://127.0.0.1:{port}", patience_s=0.0)
    assert f"127.0.0.1:{port}" in str(failed.value)


def post(url: str, path: str, body: object, headers: dict[str, str] | None = None) -> Any:
    given = {"Content-Type": "application/json", **Address(url).headers, **(headers or {})}
    asked = urllib.request.Request(url + path, json.dumps(body).encode(), given)
    with urllib.request.urlopen(asked, timeout=60) as response:
        return json.loads(response.read())


def test_a_policy_is_named_with_its_engines_address(served: Any, tmp_path: Path):
    from turnwise import rollout
    from turnwise.agents.models.small import build_small_model
    from turnwise.agents.policies.registry import make_policy

    model = build_small_model(tmp_path, ["one and two " * 30], context=256)
    server = served(model=model)
    spec = f"remote:{model}@{server.url}"
    (there,) = rollout("calc/easy", spec, episodes=1)
    (here,) = rollout("calc/easy", f"torch:{model}", episodes=1)
    assert [turn.reply.action_ids for turn in there.trajectory.turns] == [
        turn.reply.action_ids for turn in here.trajectory.turns
    ]
    make_policy(spec).close()


@pytest.mark.slow
def test_an_engine_with_a_token_is_evaluated_with_the_file_of_it(
    served: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    from turnwise.agents.models.small import build_small_model
    from turnwise.cli.app import run

    (tmp_path / "token").write_text(TOKEN)
    model = build_small_model(tmp_path / "model", ["one and two " * 30], context=256)
    spec = f"remote:{model}@{served(model=model, token=TOKEN).url}"
    asked = ["eval", "calc/easy", "--policy", spec, "--episodes", "1", "--max-failed", "1"]
    assert run(asked) == 1
    assert "give the token that they were started with" in capsys.readouterr().err
    assert run([*asked, "--token-file", str(tmp_path / "token")]) == 0
