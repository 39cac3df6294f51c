"""Every role of a run on this machine has GPUs of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.remote.gpus import GpuShares, share_gpus
from turnwise.agents.remote.local import EnginePlan, LocalEngine, LocalEngines
from turnwise.errors import RunError, TurnwiseError
from turnwise.tools.processes import gpu_names
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.placement import gpus_of, parse_placement


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``gpus(4, "4,5,6,7")``: as if CUDA saw so many, under these names."""

    def pretend(count: int, named: str | None = None) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        if named is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)

    return pretend


def test_learners_and_engines_share_none(gpus: Any):
    gpus(8)
    shares = share_gpus("auto", learners=2, engines=3, each=2)
    assert shares == GpuShares(("0", "1"), (("2", "3"), ("4", "5"), ("6", "7")))
    gpus(4, "7,5,GPU-8932f937,1")
    assert share_gpus("cuda", learners=1, engines=2) == GpuShares(("7",), (("5",), ("GPU-8932f937",)), ("1",))


def test_a_run_on_a_cpu_shares_nothing_out(gpus: Any):
    gpus(1)
    assert share_gpus("cpu", learners=2, engines=3) == GpuShares()
    gpus(0, "")
    assert share_gpus("auto", learners=2, engines=3) == GpuShares()


def test_names_that_cuda_does_not_take_are_nobody_s(gpus: Any):
    gpus(2, "3,4,-1,5")  # CUDA stops at the first that is none
    assert gpu_names(2) == ["3", "4"]
    with pytest.raises(RunError, match="sees 2"):
        share_gpus("auto", learners=1, engines=2)


def test_too_few_are_refused_with_what_each_role_needs_before_anything_is_spent(gpus: Any, tmp_path: Path):
    gpus(4, "0,1,2,3")
    said = r"needs 5 GPUs \(2 for scale.learners, 1 for each of 3 engines\), and this process sees 4"
    with pytest.raises(RunError, match=said):
        train("shop-quick", out=tmp_path / "run", on="local:engines=3", **{"scale.learners": 2})
    assert not (tmp_path / "run").exists()
    gpus(1)
    with pytest.raises(RunError, match=r"needs 2 GPUs .* sees 1"):
        train("shop-quick", out=tmp_path / "run", on="local:engines=1")
    with pytest.raises(RunError, match=r"needs 2 GPUs \(2 for scale.learners\), and"):
        train("shop-quick", out=tmp_path / "run", **{"scale.learners": 2})


def test_engines_share_the_learners_gpus_where_that_is_asked_for_and_no_other_is_left(gpus: Any):
    roles = opened(load_recipe("shop-quick", {})).session.roles
    together = parse_placement("local:engines=1,gpus=shared")
    gpus(1)
    assert gpus_of(together, roles) == GpuShares(("0",), (("0",),), ())
    gpus(3)
    assert gpus_of(together, roles) == GpuShares(("0",), (("1",),), ("2",)), "nobody shares without need"
    three = parse_placement("local:gpus=shared,engines=3")
    assert gpus_of(three, roles) == GpuShares(("0",), (("1",), ("2",), ("0",)), ())
    gpus(2)
    with pytest.raises(RunError, match="1 for each of 3 engines"):  # two engines never have the same
        gpus_of(three, roles)


@pytest.mark.parametrize("text", ["ray:engines=1,gpus=shared", "local:env_workers=2,gpus=shared"])
def test_gpus_are_shared_with_engines_of_this_machine_alone(text: str):
    with pytest.raises(TurnwiseError, match="gpus=shared is of engines on this machine"):
        parse_placement(text)


def test_an_engine_that_is_spread_over_gpus_has_as_many(gpus: Any):
    gpus(5)
    options = {"engine.kind": "vllm", "engine.options.tensor_parallel_size": 2}
    roles = opened(load_recipe("shop-quick", options)).session.roles
    assert gpus_of(parse_placement("local:engines=2"), roles).engines == (("1", "2"), ("3", "4"))


def test_each_engine_is_started_with_its_gpus_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        LocalEngine, "_run", lambda engine: None
    )  # what it would be started with is looked at
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    plan = EnginePlan("model", "torch", 64, 4, gpus=(("5",), ("6", "7")))
    with LocalEngines(plan, 2, tmp_path) as found:
        seen = [engine._environment["CUDA_VISIBLE_DEVICES"] for engine in found.engines]
    assert seen == ["5", "6,7"]
