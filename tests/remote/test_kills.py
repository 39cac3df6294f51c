"""Engines in processes of their own, used by a run and killed: nothing is lost, changed or left behind.

The kills are those of benchmarks/engine_kills.py.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from answers import assert_same, moved, sample, wait_for
from safetensors.torch import load_file

from turnwise.agents.core import Sampling, VersionSpan
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.remote.engine import RemoteFleet
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.learn.whole import checkpoint_tensors
from turnwise.trainers.report.events import live_run
from turnwise.trainers.run.loop import train

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("count", [1, pytest.param(100, marks=[pytest.mark.full, pytest.mark.timeout(3600)])])
def test_engines_that_are_killed_while_they_sample_change_no_answer(
    kills: Any, tied_checkpoint: Path, alone: TorchEngine, count: int
):
    given = kills.make_round(alone, answers=12, tokens=100)
    found = kills.kill_engines(tied_checkpoint, "torch", count, engines=2, given=given)
    assert found["kills"] == count
    assert found["identical"] == found["answers"] > 0
    assert found["failures"]["dead"] >= 1


@pytest.mark.parametrize("killed", [1, 2])
def test_engines_that_end_before_the_first_weights_are_published_get_them_when_they_are_back(
    started: Any, tied_checkpoint: Path, alone: TorchEngine, fleet: Any, random_model: Any, killed: int
):
    """A run takes its engines' leases when it first publishes: one that is gone by then is none that another run has."""
    servers = started(2, tied_checkpoint, "torch")
    remote, model = fleet(*(server.url for server in servers), silence_s=600.0), random_model(seed=3)
    for server in servers[:killed]:
        server.end()
    assert all(row.serving for row in remote.health()), "nobody has noticed yet"
    if killed == 2:
        servers[1].start()  # the canary waits for it
    assert push_weights(model, remote, 1).max_logp_gap < 1e-4
    dead = next(row for row in remote.health() if row.name == servers[0].name)
    assert (dead.serving, dead.failures) == (False, {"dead": 1})
    alone.load_weights(checkpoint_tensors(model), 1)
    expected = sample(alone)
    assert_same(sample(remote), expected)
    servers[0].start()
    wait_for(lambda: all(row.serving for row in remote.health()))
    assert {row.version for row in remote.health()} == {1}
    servers[1].end()
    assert_same(sample(remote), expected)


def test_an_engine_that_ends_while_the_canary_is_read_is_taken_out(
    started: Any, tied_checkpoint: Path, fleet: Any, random_model: Any, monkeypatch: pytest.MonkeyPatch
):
    servers = started(2, tied_checkpoint, "torch")
    remote, model, publish = fleet(*(s.url for s in servers)), random_model(seed=3), RemoteFleet.load_weights

    def then_ends(*given: Any, **named: Any) -> None:
        publish(*given, **named)
        servers[0].end()

    monkeypatch.setattr(RemoteFleet, "load_weights", then_ends)
    assert push_weights(model, remote, 1).max_logp_gap < 1e-4
    assert [row.failures for row in remote.health()] == [{"dead": 1}, {}]


def test_a_recipe_learns_with_engines_elsewhere_what_it_learns_with_its_own(
    started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same episodes under the same versions. Probabilities, and by them weights, differ by rounding: batches have other shapes."""
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    from letters import RECIPE, register_letters

    register_letters()
    recipe = yaml.safe_load(RECIPE) | {"updates": 2, "evaluate": {"every": 2, "dev": 2, "test": 2}}
    recipe |= {"checkpoint": {"every": 1, "keep": 9}}

    def run(out: str, **changes: Any) -> list[Any]:
        file = tmp_path / f"{out}.yaml"
        file.write_text(yaml.safe_dump(recipe | changes))
        train(file, out=tmp_path / out, preflight=False, log=lambda said: None)
        return [
            (turn.reply.action_ids, turn.reply.versions)
            for record in LogReader(tmp_path / out / "episodes.jsonl.zst")
            for turn in record.episode.trajectory.turns
        ]

    here = run("here")
    model = tmp_path / "here/checkpoints/step-000000/model"
    urls = [server.url for server in started(2, model, "torch", context=128)]
    assert run("there", engine={"kind": "remote", "options": {"urls": urls}}) == here
    assert {span.version for _, spans in here for span in spans} == {0, 1}
    engines = live_run(tmp_path / "there").engines
    assert {engine.name for engine in engines} == {url.removeprefix("http://") for url in urls}
    assert {(engine.serving, engine.version, engine.lag) for engine in engines} == {(True, 2, 0)}
    assert live_run(tmp_path / "here").engines == []
    step = "checkpoints/step-000002/model/model.safetensors"
    own, theirs = load_file(tmp_path / "here" / step), load_file(tmp_path / "there" / step)
    assert max((own[name] - theirs[name]).abs().max().item() for name in own) < 1e-5


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_server_of_vllm_samples_and_leaves_nothing_behind_however_it_ends(
    vllm: None, started: Any, kills: Any, tied_checkpoint: Path, fleet: Any
):
    told, killed = started(2, tied_checkpoint, "vllm", "--option", "kv_cache_gib=0.25")
    remote = fleet(told.url, killed.url)
    prompts = [[5 + i, 6, 7] * (3 + i) for i in range(6)]
    answers = kills.sample(remote, prompts, Sampling(max_tokens=20))
    assert [len(answer.token_ids) for answer in answers] == [20] * 6
    assert all(answer.versions == (VersionSpan(0, 0),) for answer in answers)
    assert told.end(signal.SIGTERM) == 0
    assert kills.sample(remote, prompts, Sampling(max_tokens=20)) == answers
    assert killed.end(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_server_of_vllm_is_sent_adapters_alone_and_samples_from_the_merged_weights(
    vllm: None, started: Any, kills: Any, tied_checkpoint: Path, fleet: Any, lora: Any, alone: TorchEngine
):
    (server,) = started(1, tied_checkpoint, "vllm", "--option", "kv_cache_gib=0.25")
    remote, model, packed = fleet(server.url), lora(), list[int]()
    for version in (1, 2):
        moved(model, version)
        before = remote.bytes_published
        assert push_weights(model, remote, version).max_logp_gap < 1e-4
        packed.append(remote.bytes_published - before)
    assert packed[1] < packed[0] / 2
    alone.load_weights(checkpoint_tensors(model), 2)
    greedy = Sampling(temperature=0.0, max_tokens=20)
    prompts = [[5 + i, 6, 7] * (3 + i) for i in range(6)]
    ours, theirs = kills.sample(remote, prompts, greedy), kills.sample(alone, prompts, greedy)
    assert [answer.token_ids for answer in ours] == [answer.token_ids for answer in theirs]
    assert all(answer.versions == (VersionSpan(0, 2),) for answer in ours)
