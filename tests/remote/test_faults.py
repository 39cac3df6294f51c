"""What becomes of answers when engines fail: they are the ones that would have been, or there are none."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from aiohttp import web
from answers import LONG, PROMPTS, assert_same, sample, wait_for

from turnwise.agents.core import Completion, Sampling, VersionSpan
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.engines.vllm_adapters import write_adapters
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.models.small import build_small_model
from turnwise.agents.remote.adapters import Adapter
from turnwise.agents.remote.answer import AnswerStream, Job, Lost, SampledTokens
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.protocol import Choice, Logprobs, SpanBody, TokenLogprob
from turnwise.agents.remote.server import EngineServer
from turnwise.errors import EngineError, RunError
from turnwise.trainers.run.loop import train

Fleet = Callable[..., Any]


def _beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FaultyProxy = _beside("faulty").FaultyProxy


def failures(remote: Any, name: str) -> dict[str, int]:
    return next(row.failures for row in remote.health() if row.name == name)


@pytest.fixture
def proxied(served: Any) -> Iterator[Callable[[], Any]]:
    """``proxied()``: one more server behind a proxy that can misbehave."""
    with contextlib.ExitStack() as stack:

        def start() -> Any:
            proxy = FaultyProxy(served().port)
            stack.callback(proxy.close)
            return proxy

        yield start


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("cut:3", "dead"),
        ("short:3", "truncated"),
        ("abort:3", "aborted"),
        ("freeze:3", "wedged"),
        ("freeze:0", "wedged"),
    ],
)
def test_what_an_engine_leaves_unfinished_another_goes_on_with(
    proxied: Any, served: Any, fleet: Fleet, alone: TorchEngine, fault: str, cause: str
):
    proxy = proxied()
    remote = fleet(proxy.url, silence_s=1.0 if cause == "wedged" else 60.0)
    proxy.fault = fault
    remote.join(served().url)
    assert_same(sample(remote), sample(alone))
    assert failures(remote, proxy.name)[cause] >= 1
    answers = sum(row.answers for row in remote.health())
    assert answers == len(PROMPTS), "an answer was counted twice, or not at all"


@pytest.mark.slow
def test_a_server_that_listens_and_says_nothing_keeps_nobody_from_seeing_that_another_is_wedged(
    proxied: Any, served: Any, fleet: Fleet, alone: TorchEngine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("turnwise.agents.remote.client.FACTS_S", 600.0)
    proxy, good = proxied(), served()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        remote = fleet(proxy.url, silence_s=1.0)
        remote.join(f"http://127.0.0.1:{mute.getsockname()[1]}")
        first, _ = mute.accept()
        with first:
            proxy.fault = "freeze:3"
            remote.join(good.url)
            assert_same(sample(remote, PROMPTS[:1]), sample(alone, PROMPTS[:1]))
    assert failures(remote, proxy.name)["wedged"] >= 1


def test_what_came_is_not_sampled_again(proxied: Any, fleet: Fleet, alone: TorchEngine):
    proxy = proxied()
    remote = fleet(proxy.url)
    proxy.fault, proxy.once = "cut:4", True
    assert_same(sample(remote, PROMPTS[:1]), sample(alone, PROMPTS[:1]))
    first, second = (json.loads(body) for body in proxy.requests)
    came = len(second["token_ids"]) - len(first["token_ids"])
    assert came >= 3
    assert second["sampling_params"]["extra_args"] == {"drawn": came}
    assert second["sampling_params"]["max_tokens"] == LONG.max_tokens - came


def test_a_connection_that_closed_while_idle_is_no_failure(proxied: Any, fleet: Fleet, alone: TorchEngine):
    proxy = proxied()
    remote = fleet(proxy.url)
    proxy.fault, proxy.once = "reset", True
    assert_same(sample(remote, PROMPTS[:1]), sample(alone, PROMPTS[:1]))
    first, second = (json.loads(body) for body in proxy.requests)
    assert first == second, "the same request, with the same id"
    assert failures(remote, proxy.name) == {}


@pytest.mark.slow
def test_an_engine_that_is_back_with_old_weights_gets_the_new_ones_first(
    served: Any, fleet: Fleet, alone: TorchEngine
):
    old = served()
    remote = fleet(old.url, served().url)
    weights = {name: tensor + 0.02 for name, tensor in alone.tensors()}
    remote.load_weights(weights.items(), 4)
    old.close()
    alone.load_weights(weights.items(), 4)
    assert_same(sample(remote), sample(alone))
    again = served(port=old.port)
    assert again.engine.version == 0
    wait_for(lambda: all(row.serving for row in remote.health()))
    assert again.engine.version == 4
    assert_same(sample(remote), sample(alone))


def test_engines_that_another_run_left_sample_nothing_until_they_have_our_weights(
    served: Any, fleet: Fleet, alone: TorchEngine
):
    urls = served().url, served().url
    weights = {name: tensor + 0.02 for name, tensor in alone.tensors()}
    killed = fleet(*urls)
    killed.load_weights(weights.items(), 4)
    killed.close()
    remote = fleet(*urls)
    assert remote.context_length == 256
    with pytest.raises(EngineError, match=r"No engine serves\.") as refused:
        sample(remote, PROMPTS[:1])
    assert "has weights 4 of another run" in refused.value.remedy
    own = {name: tensor - 0.02 for name, tensor in weights.items()}
    remote.load_weights(own.items(), 3)
    alone.load_weights(own.items(), 3)
    assert_same(sample(remote), sample(alone))
    assert [row.failures for row in remote.health()] == [{}, {}]


class Slow(EngineServer):
    """Is there, and does not come to score its first prompts in time."""

    late = 2

    async def _score(self, body: Any) -> Any:
        if self.late:
            self.late -= 1
            raise EngineError("It takes too long.", "Wait.")
        return await super()._score(body)


@pytest.mark.slow
def test_engines_that_are_there_and_not_ready_yet_are_waited_for(
    served: Any, fleet: Fleet, alone: TorchEngine
):
    slow = served(server=Slow)
    remote = fleet(slow.url)
    assert_same(sample(remote), sample(alone))
    assert failures(remote, slow.name) == {"not ready": 2}
    with pytest.raises(EngineError, match="None of the engines serves") as failed:
        fleet(served(server=Slow).url, patience_s=0.0)
    assert "It takes too long" in failed.value.remedy


class HalfApplied(EngineServer):
    """Loses the second half of the weights while it puts them into the engine, and says nothing of it."""

    def _attested(self, update: Any) -> str:
        if self.engine.version == 1:
            state = dict(self.engine.tensors())
            with torch.no_grad():
                for name in sorted(state)[len(state) // 2 :]:
                    state[name].zero_()
        return super()._attested(update)


@pytest.mark.slow
def test_a_half_applied_update_is_seen_and_made_good(
    served: Any, fleet: Fleet, alone: TorchEngine, caplog: pytest.LogCaptureFixture
):
    half = served(server=HalfApplied)
    remote = fleet(half.url, served().url)
    for version in (1, 2):
        weights = {name: tensor + 0.02 for name, tensor in alone.tensors()}
        remote.load_weights(weights.items(), version)
        alone.load_weights(weights.items(), version)
        assert_same(sample(remote), sample(alone))
    assert failures(remote, half.name)["not updated"] >= 1
    assert half.name in caplog.text
    wait_for(lambda: all(row.serving for row in remote.health()))
    assert_same(sample(remote), sample(alone))


def test_an_update_that_no_engine_takes_is_an_error(served: Any, fleet: Fleet):
    server = served()
    remote = fleet(server.url)
    with pytest.raises(EngineError, match="No engine took weights 1"):
        remote.load_weights([("lm_head.weight", torch.zeros(3))], 1)
    assert remote.version == 0


@pytest.mark.slow
@pytest.mark.parametrize("cut", [0.0, 0.5, 0.999])
def test_a_pack_that_breaks_off_or_is_damaged_changes_nothing(
    served: Any, fleet: Fleet, alone: TorchEngine, monkeypatch: pytest.MonkeyPatch, cut: float
):
    from turnwise.agents.remote import transfer

    remote = fleet(served().url)
    whole = transfer.Publisher.by_file

    def damaged(publisher: Any, checksum: str) -> Any:
        info = whole(publisher, checksum)
        data = Path(info.path).read_bytes()
        Path(info.path).write_bytes(data[: int(len(data) * cut)])
        return info

    monkeypatch.setattr(transfer.Publisher, "by_file", damaged)
    weights = {name: tensor + 0.02 for name, tensor in alone.tensors()}
    with pytest.raises(EngineError, match="No engine took weights"):
        remote.load_weights(weights.items(), 1)
    wait_for(lambda: all(row.serving for row in remote.health()))
    assert_same(sample(remote), sample(alone))


class Disk:
    """A file system of its own, which can be filled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, but: int) -> None:
        """Leave so many bytes free."""
        (self.path / "filler").write_bytes(bytes(shutil.disk_usage(self.path).free - but))

    def free(self) -> None:
        (self.path / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield Disk(path)
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("packs", [0.0, 0.5])
def test_full_shared_memory_is_one_error_and_engines_keep_their_weights(
    served: Any, fleet: Fleet, alone: TorchEngine, disk: Disk, monkeypatch: pytest.MonkeyPatch, packs: float
):
    monkeypatch.setattr("turnwise.agents.remote.transfer.shared_memory", lambda: str(disk.path))
    servers = served(), served()
    remote = fleet(*(server.url for server in servers))
    weights = {name: tensor + 0.02 for name, tensor in alone.tensors()}
    remote.load_weights(weights.items(), 1)
    alone.load_weights(weights.items(), 1)
    newer = {name: tensor + 0.02 for name, tensor in weights.items()}
    disk.fill(int(remote.bytes_published * packs))
    before = set(disk.path.rglob("*"))
    with pytest.raises(EngineError, match=r"cannot be packed in .*No space left on device") as full:
        remote.load_weights(newer.items(), 2)
    assert "--shm-size" in full.value.remedy
    assert set(disk.path.rglob("*")) == before, "half a pack is left"
    assert {server.engine.version for server in servers} == {remote.version} == {1}
    servers[0].close()
    assert_same(sample(remote), sample(alone))
    again = served(port=servers[0].port)
    wait_for(lambda: all(row.serving for row in remote.health()))
    assert again.engine.version == 1, "who is back gets the weights that were published"
    disk.free()
    remote.load_weights(newer.items(), 2)
    alone.load_weights(newer.items(), 2)
    assert_same(sample(remote), sample(alone))


def test_full_shared_memory_is_the_same_error_where_an_engines_own_processes_read_files(disk: Disk):
    disk.fill(4096)
    adapter = Adapter(torch.zeros(8, 4096), torch.zeros(64, 8), 1.0)
    with pytest.raises(EngineError, match=r"cannot be packed in .*No space left on device") as full:
        write_adapters(disk.path, {"layer.weight": adapter})
    assert "--shm-size" in full.value.remedy


@pytest.mark.slow
def test_a_run_whose_disk_is_full_when_it_has_published_ends_with_one_error_and_goes_on_as_if_nothing_were(
    served: Any, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from letters import RECIPE, register_letters

    register_letters()
    recipe = yaml.safe_load(RECIPE) | {"updates": 2, "evaluate": {"every": 2, "dev": 2, "test": 2}}
    recipe |= {"checkpoint": {"every": 1, "keep": 9}, "warm_start": None}

    def run(out: Path, server: Any, **given: Any) -> list[Any]:
        options = {"urls": [server.url]}
        train(
            recipe | {"model": str(model), "engine": {"kind": "remote", "options": options}},
            out=out,
            preflight=False,
            log=lambda said: None,
            **given,
        )
        return [
            (record.update, turn.reply.action_ids, turn.reply.versions)
            for record in LogReader(out / "episodes.jsonl.zst")
            for turn in record.episode.trajectory.turns
        ]

    model = build_small_model(tmp_path / "model", ["one and two " * 30], context=256)
    expected = run(tmp_path / "whole", served(model=model))
    server, publish = served(model=model), RemoteFleet.load_weights

    def full_when_published(remote: Any, weights: Any, version: int, **given: Any) -> None:
        publish(remote, weights, version, **given)
        if version == 1:
            disk.fill(0)

    out = disk.path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(RemoteFleet, "load_weights", full_when_published)
        with pytest.raises(RunError, match="No space left on device") as full:
            run(out, server)
    assert "Make room and go on with --resume" in full.value.remedy
    assert server.engine.version == 1
    disk.free()
    assert run(out, server, resume=True) == expected


# --- readings without a network ----------------------------------------------------------------------


def reading(
    limit: int = 4, stop: tuple[int, ...] = (9,), kept: SampledTokens | None = None, vocabulary: int = 100
) -> AnswerStream:
    job = Job("id", (1, 2), Sampling(max_tokens=limit), stop, 5, limit)
    body, kept = job.ask(kept or SampledTokens(), version=3, resumes=False)
    return AnswerStream(job, kept, 3, body, vocabulary)


def piece(
    ids: Sequence[int], reason: str | None = None, spans: Sequence[tuple[str, int, int]] | None = None
) -> Choice:
    content = [TokenLogprob(token_id=token, logprob=-1.0) for token in ids]
    versions = None if spans is None else [SpanBody(version=v, start=a, end=b) for v, a, b in spans]
    return Choice(
        token_ids=list(ids),
        logprobs=Logprobs(content=content),
        finish_reason=reason,
        weight_versions=versions,
    )


@pytest.mark.parametrize("logprob", [float("nan"), float("inf"), float("-inf"), 0.01, 7.5, 50.0])
def test_a_log_probability_that_is_none_takes_the_engine_out(logprob: float):
    found = reading()
    found.take(piece([1]))
    lie = piece([2, 3])
    assert lie.logprobs is not None
    assert lie.logprobs.content is not None
    lie.logprobs.content[1].logprob = logprob
    with pytest.raises(Lost, match=r"refused: token 2 has the log-probability") as lost:
        found.take(lie)
    assert lost.value.kept == SampledTokens()


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([[10**12]], "token 1 is 1000000000000, and the model has those from 0 to 99"),
        ([[1, -5]], "token 2 is -5"),
        ([[100]], "token 1 is 100"),
        ([[1, 9, 2]], "token 3 comes after a stop token"),
        ([[1, 9], [2]], "1 tokens come after a stop token"),
    ],
)
def test_tokens_that_nobody_can_sample_take_the_engine_out(pieces: list[list[int]], told: str):
    found = reading(vocabulary=100)
    for ids in pieces[:-1]:
        found.take(piece(ids))
    with pytest.raises(Lost, match=told) as lost:
        found.take(piece(pieces[-1]))
    assert lost.value.cause == "refused"


VOCABULARY = 320  # of the small model


class Mute(EngineServer):
    """Does not say how many tokens its model has."""

    async def _facts(self, request: Any) -> Any:
        facts = json.loads((await super()._facts(request)).body)
        return web.json_response({key: value for key, value in facts.items() if key != "vocabulary"})


def test_tokens_are_bounded_by_what_the_engine_or_the_run_says_and_where_neither_does_it_is_refused_by_name(
    served: Any, fleet: Fleet
):
    assert fleet(served().url).vocabulary == VOCABULARY
    mute = served(server=Mute)
    with pytest.raises(EngineError, match=rf"{mute.name} \(neither it nor the run says how many tokens"):
        fleet(mute.url)
    assert fleet(mute.url, vocabulary=99).vocabulary == 99


def test_a_version_of_any_length_is_a_version_that_is_none():
    found = reading()
    with pytest.raises(Lost, match="unversioned"):
        found.take(piece([1, 2, 3, 4], "length", [("9" * 5000, 0, 4)]))


@pytest.mark.parametrize(
    ("pieces", "cause"),
    [
        ([piece([1, 2], "stop", [("3", 0, 2)])], "truncated"),  # no stop token
        ([piece([1, 2], "length", [("3", 0, 2)])], "truncated"),  # fewer than asked
        ([piece([1, 2, 3, 4])], "truncated"),  # no reason
        ([piece([1, 2, 3, 4], "abort", [("3", 0, 4)])], "aborted"),
        ([piece([1, 2, 3, 4], "length")], "unversioned"),
        ([piece([1, 2, 3, 4], "length", [("2", 0, 4)])], "unversioned"),  # old weights
        ([piece([1, 2, 3, 4], "length", [("3", 0, 2), ("4", 2, 4)])], "unversioned"),  # nothing was published
        ([piece([1, 2, 3, 4], "length", [("3", 0, 3)])], "unversioned"),  # not of all tokens
        ([piece([1, 2, 3, 4], "length", [("mine", 0, 4)])], "unversioned"),
        ([piece([1, 2, 3, 4, 5], "length", [("3", 0, 5)])], "refused"),
    ],
)
def test_what_is_no_answer_is_never_taken_for_one(pieces: list[Choice], cause: str):
    found = reading()
    with pytest.raises(Lost) as lost:
        take(found, pieces)
    assert lost.value.cause == cause
    if cause in ("unversioned", "refused"):
        assert lost.value.kept == SampledTokens()


def take(found: AnswerStream, pieces: Sequence[Choice]) -> Completion:
    for choice in pieces:
        found.take(choice)
    return found.completion()


def test_tokens_whose_weights_are_not_known_are_not_kept():
    found = reading(limit=8)
    found.take(piece([1, 2]))
    found.update_begins()
    found.take(piece([3, 4]))
    lost = found.lost("dead", "")
    assert lost.kept == SampledTokens((1, 2), (-1.0, -1.0), (VersionSpan(0, 3),))


def test_an_engine_that_cannot_enter_its_stream_repeats_the_seed_under_the_same_weights_alone():
    job = Job("id", (1, 2), Sampling(max_tokens=8), (), 5, 8)
    kept = SampledTokens((7, 8), (-1.0, -2.0), (VersionSpan(0, 3),))
    body, before = job.ask(kept, version=3, resumes=False)
    assert (body.token_ids, body.sampling_params.seed, before) == ([1, 2], 5, SampledTokens())
    body, before = job.ask(kept, version=4, resumes=False)
    assert (body.token_ids, body.sampling_params.max_tokens, before) == ([1, 2, 7, 8], 6, kept)
    assert body.sampling_params.seed != 5
    body, before = job.ask(kept, version=4, resumes=True)
    assert (body.sampling_params.seed, body.sampling_params.drawn) == (5, 2)


def test_the_same_answer_is_another_request_under_other_weights():
    job = Job("id", (1, 2), Sampling(max_tokens=8), (), 5, 8)
    ids = [job.ask(SampledTokens(), version=version, resumes=True)[0].request_id for version in (3, 3, 4)]
    assert ids[0] == ids[1] != ids[2]


def test_spans_of_two_engines_are_joined():
    first = SampledTokens((1, 2), (-1.0, -1.0), (VersionSpan(0, 3),))
    rest = SampledTokens((3, 4, 5), (-1.0,) * 3, (VersionSpan(0, 3), VersionSpan(1, 4)))
    assert first.and_then(rest).versions == (VersionSpan(0, 3), VersionSpan(3, 4))
