"""One card for the learner and for vLLM: memory that is left to the learner, adapters that are added up as the model computes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from turnwise.agents.core import Sampling
from turnwise.agents.engines.vllm import VllmEngine
from turnwise.agents.engines.vllm_adapters import AddedAdapters, rank_options
from turnwise.agents.engines.vllm_sleep import Sleeper
from turnwise.agents.remote.adapters import AdaptedWeights, Adapter, merged
from turnwise.errors import EngineError
from turnwise.tools.processes import module_path
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.learn.whole import adapted_weights, checkpoint_tensors
from turnwise.trainers.run.loop import train

LORA = {"model.lora": {"rank": 8}}


@pytest.mark.parametrize(
    ("changes", "on", "why"),
    [
        ({"engine.options": {"sleep": "kv"}}, "", "on a GPU only, and this run is on a CPU"),
        (
            {"engine.options": {"sleep": "weights"}},
            "local:engines=1",
            "another process is not told when that is",
        ),
        ({"engine.options": {"adapter_rank": 8}}, "", "the recipe trains no adapters"),
        ({"engine.options": {"adapter_rank": 4}, **LORA}, "", "trains adapters of rank 8"),
        ({"engine.options": {"adapter_rank": 8}, **LORA}, "local:engines=1", "merges them itself"),
    ],
)
def test_a_choice_that_this_engine_cannot_have_is_refused_before_anything_is_spent(
    tmp_path: Path, changes: dict[str, Any], on: str, why: str
) -> None:
    with pytest.raises(EngineError, match=why):
        train("shop-quick", out=tmp_path / "run", on=on, device="cpu", log=lambda line: None, **changes)
    assert not (tmp_path / "run").exists()


def test_an_engine_that_samples_while_the_learner_works_cannot_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    given: dict[str, Any] = {"device": "auto", "elsewhere": False, "rank": 0}
    with pytest.raises(EngineError, match=r"scale\.staleness it samples all the while"):
        VllmEngine.check_use({"sleep": "kv"}, in_flight=True, **given)
    VllmEngine.check_use({"sleep": "kv"}, in_flight=False, **given)
    VllmEngine.check_use(
        {"sleep": "yes", "adapter_rank": "x"}, in_flight=False, **given
    )  # its constructor says so


# --- sleep -------------------------------------------------------------------------------------------------


def sample(engine: Any) -> Any:
    prompt = list(range(3, 80))
    return asyncio.run(engine.generate(prompt, Sampling(max_tokens=8), stop_ids=(), seed=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sleep", "calls"),
    [
        ("kv", ["discard kv_cache", "wake_up kv_cache"]),
        ("weights", ["sleep 2", "wake_up weights", "wake_up kv_cache"]),
    ],
)
def test_memory_is_gone_while_the_learner_works_and_answers_are_the_same_with_the_next_weights(
    vllm_engine: Any,
    random_model: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    sleep: Any,
    calls: list[str],
) -> None:
    from vllm_memory_stand_in import CardMemory

    push_weights(random_model(), vllm_engine, 0)
    before = sample(vllm_engine)
    card = CardMemory(vllm_engine, monkeypatch)
    monkeypatch.setattr(vllm_engine, "_sleeper", Sleeper(vllm_engine._engine, sleep))
    for version in (1, 2):
        card.calls.clear()
        vllm_engine.sleep()
        vllm_engine.sleep()
        assert card.gone == ({"kv_cache"} if sleep == "kv" else {"weights", "kv_cache"})
        with pytest.raises(EngineError, match="sleeps while the learner works"):
            sample(vllm_engine)
        with pytest.raises(EngineError, match="sleeps while the learner works"):
            vllm_engine.score([[1, 2]])
        assert push_weights(random_model(), vllm_engine, version).max_logp_gap < 1e-4
        assert (card.gone, card.calls) == (set(), calls)
        again = sample(vllm_engine)
        assert (again.token_ids, again.logprobs) == (before.token_ids, before.logprobs)
    push_weights(random_model(), vllm_engine, 0)


# --- adapters ----------------------------------------------------------------------------------------------


def lora(model: Any, seed: int = 1, rank: int = 4) -> Any:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    return get_peft_model(
        model,
        LoraConfig(
            r=rank, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False
        ),
    ).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_adapters_merged_one_weight_after_the_other_are_those_merged_at_once(
    random_model: Callable[..., Any], dtype: Any
) -> None:
    model = lora(random_model().to(dtype))
    weights = adapted_weights(model)
    assert weights is not None
    ours, theirs = dict(merged(weights.base, weights.adapters)), dict(checkpoint_tensors(model))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_adapters_are_written_for_each_version_and_their_base_is_loaded_once_for_each_model(
    random_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("vllm")
    from safetensors.torch import load_file

    told: list[Any] = []
    engine = SimpleNamespace(add_lora=told.append)
    added, bases = AddedAdapters(engine, 4), list[int]()
    first, second = lora(random_model()), lora(random_model(), seed=2)
    for number, model in enumerate((first, first, second, second)):
        weights = adapted_weights(model)
        assert weights is not None
        added.load(weights, lambda base, number=number: bases.append(number))
        folder = Path(added.request.lora_path)
        tensors = load_file(folder / "adapter_model.safetensors")
        config = json.loads((folder / "adapter_config.json").read_text())
        assert config["r"] == config["lora_alpha"] == 4
        for name, adapter in weights.adapters.items():
            place = f"base_model.model.{name.removesuffix('.weight')}"
            delta = tensors[f"{place}.lora_B.weight"] @ tensors[f"{place}.lora_A.weight"]
            torch.testing.assert_close(delta, adapter.b_OK @ adapter.a_KI * adapter.scale)
    assert bases == [0, 2]
    assert len({one.lora_path for one in told}) == 4, "vLLM tells prefixes of versions apart by their folders"
    assert [Path(one.lora_path).exists() for one in told] == [False, False, False, True]
    assert all(one.load_inplace for one in told)
    assert not added.request.load_inplace
    with pytest.raises(EngineError, match="Adapters of rank 6 do not fit"):
        added.load(
            AdaptedWeights(first, {}, {"a.weight": Adapter(torch.ones(6, 2), torch.ones(2, 6), 1.0)}),
            bases.append,
        )
    added.drop()
    assert added.request is None
    assert not Path(told[-1].lora_path).exists()


def test_ranks_are_vllms_own_and_the_head_has_no_adapter(tied_checkpoint: Path) -> None:
    assert rank_options(0, tied_checkpoint) == {}
    found = rank_options(9, tied_checkpoint)
    assert found["max_lora_rank"] == 16
    assert found["lora_target_modules"] == [
        f"{name}_proj" for name in ("down", "gate", "k", "o", "q", "up", "v")
    ]
    for rank in (-1, 513):
        with pytest.raises(EngineError, match="from 1 to 512"):
            rank_options(rank, tied_checkpoint)


@pytest.mark.full
@pytest.mark.usefixtures("vllm")
@pytest.mark.timeout(600)
def test_vllm_adds_adapters_as_it_computes_and_samples_what_the_trainer_has(tmp_path: Path) -> None:
    case = Path(__file__).with_name("vllm_adapter_cases.py")
    environment = {**os.environ, "PYTHONPATH": module_path(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(case), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    gaps = [*found["canary"], found["sampled"], found["again"], found["other base"], found["whole weights"]]
    assert max(*gaps, found["adapters after them"]) < 1e-3
    assert (found["base loaded"], found["base loaded then"]) == (1, 2)
    assert [version for _, version in found["versions"]] == [2, 3], (
        "an answer under way goes on with the new ones"
    )
    assert "Set engine.options.adapter_rank to 6" in found["too large"]
