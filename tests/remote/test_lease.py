"""An engine is one run's at a time: a second run is refused, unless the first is gone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from answers import PROMPTS, sample, wait_for

from turnwise.agents.engines.registry import check_free
from turnwise.agents.remote.client import Address, RemoteServer
from turnwise.agents.remote.lease import Lease, LeaseHolder
from turnwise.agents.remote.protocol import LeaseBody
from turnwise.errors import EngineError, RunError
from turnwise.tools.owner import name_of
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.run.directory import open_run

Fleet = Callable[..., Any]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"BEAT_S": 0.1, "LEASE_S": 1.5}.items():
        monkeypatch.setattr(f"turnwise.agents.remote.lease.{name}", seconds)
    monkeypatch.setattr("turnwise.agents.remote.watch.BEAT_S", 0.1)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from letters import RECIPE, register_letters

    register_letters()
    return yaml.safe_load(RECIPE)


def test_two_runs_that_share_an_engine_are_refused(served: Any, fleet: Fleet, random_model: Any):
    shared, own = served(), served()
    first, second = fleet(shared.url), fleet(own.url, shared.url)
    first.belongs_to("runs/first")
    push_weights(random_model(seed=3), first, 1)
    with pytest.raises(EngineError, match=r"used by another run: runs/first \(process \d+") as error:
        push_weights(random_model(seed=4), second, 1)
    assert "serve-engine" in error.value.remedy
    assert shared.engine.version == 1
    with pytest.raises(EngineError, match="used by another run: runs/first"):
        check_free("remote", {"urls": [shared.url]}, "runs/second")
    push_weights(random_model(seed=5), first, 2)
    first.close()
    push_weights(random_model(seed=4), second, 1)
    assert shared.engine.version == own.engine.version == 1


def test_nobody_steers_an_engine_without_its_lease(served: Any, fleet: Fleet, random_model: Any):
    server = served()
    remote = fleet(server.url)
    push_weights(random_model(seed=3), remote, 1)
    other = RemoteServer(Address(server.url))
    with pytest.raises(EngineError, match="used by another run"):
        other.call("POST", "/pause?mode=keep")
    other.look()


def test_a_run_that_fell_silent_loses_its_engine_and_hears_of_it(
    served: Any, fleet: Fleet, random_model: Any, monkeypatch: pytest.MonkeyPatch
):
    server = served()
    silent, heir = fleet(server.url), fleet(server.url)
    push_weights(random_model(seed=3), silent, 1)
    beat, speaks = silent._publishing._lease.beat, threading.Event()
    monkeypatch.setattr(silent._publishing._lease, "beat", lambda server: not speaks.wait(30) or beat(server))
    push_weights(random_model(seed=4), heir, 1)  # waits until the lease is lost
    speaks.set()
    silent.options = silent.options._replace(patience_s=3600.0)  # waiting brings nothing: the other run lives
    with pytest.raises(EngineError) as error:
        push_weights(random_model(seed=5), silent, 2)
    assert "another run" in str(error.value)
    assert server.engine.version == 1
    assert heir.health()[0].serving


def test_an_evaluation_whose_engine_is_given_other_weights_meanwhile_ends_with_their_name(
    served: Any, fleet: Fleet, random_model: Any, monkeypatch: pytest.MonkeyPatch
):
    server, look, held = served(), RemoteServer.look, threading.Event()
    evaluation, unused = fleet(server.url), fleet(server.url)

    def looked(server: RemoteServer) -> Any:
        if held.is_set() and server in evaluation._serving.router.servers():
            raise EngineError("Not now.", "Wait.")
        return look(server)

    monkeypatch.setattr(RemoteServer, "look", looked)
    held.set()
    sample(evaluation, PROMPTS[:1])
    push_weights(random_model(seed=3), fleet(server.url), 0)  # as a warm start is published
    held.clear()
    said = rf"not all be of one model: the engine at {server.name} has weights 0 of another run \([0-9a-f]{{8}}\)"
    wait_for(lambda: bool(evaluation._watch._own.disturbed))
    with pytest.raises(EngineError, match=said):
        sample(evaluation, PROMPTS[:1])
    with pytest.raises(EngineError, match=said):
        evaluation.close()
    unused.close()


def test_weights_that_changed_since_the_last_look_are_seen_when_an_evaluation_ends(
    served: Any, fleet: Fleet, random_model: Any, monkeypatch: pytest.MonkeyPatch
):
    server, looks, look = served(), list[str](), RemoteServer.look
    monkeypatch.setattr("turnwise.agents.remote.watch.BEAT_S", 3600.0)
    monkeypatch.setattr(RemoteServer, "look", lambda server: (looks.append(server.name), look(server))[1])
    evaluation = fleet(server.url)
    wait_for(lambda: len(looks) >= 2)  # to begin with, and in the watch
    sample(evaluation, PROMPTS[:1])
    push_weights(random_model(seed=3), fleet(server.url), 0)
    with pytest.raises(EngineError, match="not all be of one model"):
        evaluation.close()


def test_what_was_sampled_before_a_run_took_the_engine_stands_and_others_go_on(
    served: Any, fleet: Fleet, random_model: Any
):
    taken, other = served(), served()
    evaluation = fleet(taken.url, other.url)
    sample(evaluation)
    wait_for(lambda: all(evaluation._watch._own.is_sure(s) for s in evaluation._serving.router.servers()))
    push_weights(random_model(seed=3), fleet(taken.url), 0)
    wait_for(lambda: any("has weights 0" in row.cause for row in evaluation.health()))
    sample(evaluation)
    evaluation.close()


def test_the_engine_of_a_run_whose_process_has_ended_is_free_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("turnwise.agents.remote.lease.LEASE_S", 3600.0)
    lease, mine = Lease(), LeaseHolder("mine")._body
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        theirs = mine.model_copy(update={"run": "theirs", "process": name_of(process.pid)})
        assert lease.ask(theirs).granted
        assert not lease.ask(mine).granted
        process.communicate(b"\n")
    assert lease.ask(mine).granted


def test_the_same_run_resumed_has_its_lease_still():
    lease = Lease()
    elsewhere = LeaseBody(run="host:/runs/a", holder="runs/a", process="1-1", local="another machine")
    assert lease.ask(elsewhere).granted
    again = elsewhere.model_copy(update={"process": "2-2"})
    assert lease.ask(again).granted
    found = lease.ask(LeaseHolder("host:/runs/b")._body)
    assert (found.granted, found.holder) == (False, "runs/a")


def test_a_second_training_run_is_refused_before_anything_is_spent(
    served: Any, fleet: Fleet, random_model: Any, letters: dict[str, Any], tmp_path: Path
):
    from turnwise.trainers.run.loop import train

    server = served()
    push_weights(random_model(seed=3), fleet(server.url), 1)
    letters["engine"] = {"kind": "remote", "options": {"urls": [server.url]}}
    with pytest.raises(EngineError, match=rf"used by another run: process {os.getpid()}"):
        train(letters, out=tmp_path / "run", preflight=False, log=lambda line: None)
    assert not (tmp_path / "run/model").exists()


@pytest.mark.parametrize(
    ("key", "value", "refused"),
    [
        ("engine.options.urls", ["http://10.0.0.9:8700"], False),
        ("engine.options.urls_file", "others.txt", False),
        ("engine.options.token_file", "other.token", False),
        ("engine.options.publish_host", "10.0.0.8", False),
        ("engine.options.silence_s", 30, False),
        ("engine.options.patience_s", 600, False),
        ("engine.options.publish_s", 900, False),
        ("engine.context_length", 128, True),
    ],
)
def test_a_run_is_resumed_with_engines_elsewhere(tmp_path: Path, key: str, value: Any, refused: bool):
    base = {"engine.kind": "remote", "engine.options.urls": ["http://10.0.0.7:8700"]}
    with open_run(tmp_path / "run", load_recipe("shop-quick", base), "", resume=False):
        (tmp_path / "run/checkpoints/step-000001").mkdir(parents=True)
    other = load_recipe("shop-quick", {**base, key: value})
    context = pytest.raises(RunError, match=key) if refused else contextlib.nullcontext()
    with context, open_run(tmp_path / "run", other, "", resume=True):
        pass
