"""Engines that Ray places: the same commands, the same run, and back when they or their actors are killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from answers import assert_same, sample, wait_for
from psutil import Process

from turnwise.agents.engines.registry import open_engine
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.remote.local import EnginePlan
from turnwise.agents.remote.ray_actors import RayCluster
from turnwise.agents.remote.ray_engines import RayEngines, ray_engines
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.workers.hosted import WorkerHosts
from turnwise.agents.workers.pool import WorkerPool
from turnwise.agents.workers.ray_hosts import ray_hosts
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import MissingDependencyError, RecipeError, TurnwiseError
from turnwise.tasks.core import Split
from turnwise.tools.processes import module_path
from turnwise.trainers.run.placement import Placement, parse_placement, placed_engine

CONTEXT = 256


@pytest.fixture
def cluster(ray: Any) -> Iterator[Any]:
    """Ray on this machine, as a cluster of two processors."""
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        _node_ip_address="127.0.0.1",
        runtime_env={"env_vars": {"PYTHONPATH": module_path()}},
    )
    yield ray
    ray.shutdown()


def plan_of(model: Path) -> EnginePlan:
    return EnginePlan(str(model), "torch", CONTEXT, 16, "cpu")


@pytest.mark.full  # Ray and three starts of a server
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_engines_that_ray_places_answer_as_one_here_and_are_back_when_they_are_killed(
    cluster: Any, tied_checkpoint: Path, tmp_path: Path, alone: TorchEngine
):
    with ray_engines(plan_of(tied_checkpoint), 1, tmp_path) as engines:
        remote = open_engine("remote", str(tied_checkpoint), context_length=CONTEXT, **engines.options)
        try:
            assert_same(sample(remote), sample(alone))
            (before,) = states(engines)
            os.kill(before.pids[1], signal.SIGKILL)  # the engine: its actor starts it again
            wait_for(lambda: states(engines)[0].starts == 2 and states(engines)[0].answers)
            assert_same(sample(remote), sample(alone))
            assert states(engines)[0].pids[0] == before.pids[0]
            os.kill(
                before.pids[0], signal.SIGKILL
            )  # the actor: Ray starts another, elsewhere for all the run knows
            wait_for(lambda: has_state(engines) and states(engines)[0].pids[0] != before.pids[0])
            wait_for(lambda: states(engines)[0].answers)
            assert states(engines)[0].url != before.url
            assert_same(sample(remote), sample(alone))
            last = states(engines)[0].pids
        finally:
            remote.close()
    wait_for(lambda: not any(map(lives, last)))


@pytest.mark.full  # Ray, and some starts of worker processes
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_environments_that_ray_places_play_the_same_and_are_back_when_they_or_their_actors_are_killed(
    cluster: Any,
):
    requests = [
        Request(task, seed) for seed, task in enumerate(suite_tasks(get_suite("craft/easy"), Split.DEV, 6))
    ]
    here = run_episodes(requests, scripted("random"))
    here_alone = RayCluster(cluster, True, False, "127.0.0.1")
    with ray_hosts(2, ["turnwise/Craft-v0"], here_alone) as hosts, WorkerPool(hosts) as pool:
        assert told(run_episodes(requests, scripted("random"), env_workers=pool)) == told(here)
        wait_for(lambda: len(pool.workers()) == 2)
        (worker, other), before = pool.workers(), Path(hosts.file).read_text()
        os.kill(worker.pid, signal.SIGKILL)  # a process: its host starts another for the run
        wait_for(lambda: worker not in pool.workers() and len(pool.workers()) == 2)
        keeper = Process(other.pid).parent()
        assert keeper is not None
        actor = keeper.parent()
        assert actor is not None
        actor.kill()  # an actor: Ray starts another, at another address
        assert told(run_episodes(requests, scripted("random"), env_workers=pool)) == told(here)
        wait_for(lambda: before != Path(hosts.file).read_text() and len(addresses(hosts)) == 2)
        assert all(
            address.startswith("127.0.0.1:") for address in addresses(hosts)
        )  # a cluster of this machine
        wait_for(lambda: {one.place for one in pool.workers()} == addresses(hosts))
        assert told(run_episodes(requests, scripted("random"), env_workers=pool)) == told(here)
        pids = [one.pid for one in pool.workers()]
    wait_for(lambda: not any(map(lives, pids)))


def addresses(hosts: WorkerHosts) -> set[str]:
    return {*Path(hosts.file).read_text().split()}


def told(episodes: list[Any]) -> list[Any]:
    return [
        (e.outcome, e.end, [(t.observation, t.action, t.reward, t.state_key) for t in e.trajectory.turns])
        for e in episodes
    ]


def has_state(engines: RayEngines) -> bool:
    return None not in engines.states()


def states(engines: RayEngines) -> list[Any]:
    return [state for state in engines.states() if state is not None]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ray", "none is asked for"),
        ("ray:env_workers=0", "none is asked for"),
        ("ray:engine=2", "no role 'engine'"),
        ("ray:engines=x", "no number of engines"),
        ("ray://head:10001/engines=1", "not placed through Ray's client"),
    ],
)
def test_a_place_in_ray_that_is_none_is_refused(text: str, said: str):
    with pytest.raises(TurnwiseError, match=said):
        parse_placement(text)


def test_without_ray_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tied_checkpoint: Path, tmp_path: Path
):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingDependencyError, match=r"'ray' is not installed, which --on ray:… needs"
    ) as refused:
        RayEngines(plan_of(tied_checkpoint), 1, tmp_path)
    assert refused.value.remedy == "pip install 'turnwise[scale]'"


def test_an_engine_kind_that_no_server_has_is_not_placed(tmp_path: Path):
    from turnwise.trainers.recipe.load import load_recipe
    from turnwise.trainers.run.door import opened

    recipe = load_recipe(
        "shop-quick", {"engine.kind": "remote", "engine.options": {"urls": ["http://127.0.0.1:1"]}}
    )
    roles = opened(recipe).session.roles
    place = placed_engine(Placement(1, None, ray=True), roles, "model", CONTEXT, tmp_path)
    with pytest.raises(RecipeError, match="is 'remote'"), place:
        pass
