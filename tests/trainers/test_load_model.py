"""Loading a model to train: no dropout in any mode, layers computed again where asked, parts frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import yaml
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from turnwise.agents.engines.vllm_start import _remedy, check_context
from turnwise.agents.remote.vllm_memory import memory_options
from turnwise.errors import EngineError, RecipeError, RunError
from turnwise.trainers.learn.model import base_of, deterministic, hidden_states, load_model
from turnwise.trainers.learn.weights import weights_of
from turnwise.trainers.recipe.schema import Lora
from turnwise.trainers.run.loop import train

CPU = torch.device("cpu")
TOKENS = torch.arange(2, 42).reshape(2, 20)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=2,
        attention_dropout=0.5,
    )
    return saved(LlamaForCausalLM(config), tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=64)
    assert config.attn_pdrop > 0
    return saved(GPT2LMHeadModel(config), tmp_path_factory.mktemp("gpt2"))


def saved(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder


def gradient(model: Any) -> Any:
    hidden_states(model, TOKENS).square().mean().backward()
    return torch.cat([p.grad.flatten() for p in weights_of(model).trainable() if p.grad is not None])


def runs_of_a_layer(model: Any) -> list[int]:
    """Counts how often the first layer's attention is computed."""
    runs: list[int] = []
    attention = base_of(model).get_decoder().layers[0].self_attn
    attention.register_forward_hook(lambda *_: runs.append(1))
    return runs


@pytest.mark.parametrize("lora", [None, Lora(rank=4)], ids=["full", "lora"])
def test_layers_computed_again_give_the_same_gradient(llama: Path, lora: Lora | None) -> None:
    plain = load_model(llama, CPU, lora)
    again = load_model(llama, CPU, lora, gradient_checkpointing=True)
    once, twice = runs_of_a_layer(plain), runs_of_a_layer(again)
    torch.testing.assert_close(gradient(again), gradient(plain))
    assert (len(once), len(twice)) == (1, 2)
    assert [p.shape for p in weights_of(plain).trainable()] == [
        p.shape for p in weights_of(again).trainable()
    ]


def test_layers_are_still_computed_again_after_a_look_at_the_canary(llama: Path) -> None:
    from turnwise.trainers.learn.sync import trainer_logprobs

    model = load_model(llama, CPU, gradient_checkpointing=True)
    trainer_logprobs(model, TOKENS.tolist())
    runs = runs_of_a_layer(model)
    gradient(model)
    assert len(runs) == 2


@pytest.mark.parametrize("which", ["llama", "gpt2"])
def test_no_mode_has_dropout(which: str, request: pytest.FixtureRequest) -> None:
    model: Any = load_model(request.getfixturevalue(which), CPU)
    with torch.no_grad():
        expected = model.eval()(input_ids=TOKENS).logits
        torch.testing.assert_close(model.train()(input_ids=TOKENS).logits, expected)


def test_a_frozen_model_has_nothing_to_train(llama: Path) -> None:
    assert not weights_of(load_model(llama, CPU, frozen=True)).trainable()


def test_an_architecture_that_cannot_is_refused(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LlamaForCausalLM, "supports_gradient_checkpointing", False)
    with pytest.raises(RecipeError, match="LlamaForCausalLM knows no gradient checkpointing"):
        load_model(llama, CPU, gradient_checkpointing=True)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Free memory on device cuda:0 (3.1/23.6 GiB) on startup is less than desired", "Lower gpu_memory"),
        ("To serve at least one request, 2.0 GiB KV cache is needed", "Raise gpu_memory"),
        ("No available memory for the cache blocks.", "Raise gpu_memory"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "Lower gpu_memory"),
        ("Repo id must be in the form", "model's path"),
        ("Error in memory profiling. Initial free memory 137.05 GiB", "cache of a fixed size"),
    ],
)
def test_the_remedy_fits_what_vllm_says(said: str, remedy: str) -> None:
    assert remedy in _remedy(said)


def test_what_is_deterministic_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")

    def now() -> tuple[bool, ...]:
        cuda = torch.backends.cuda
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,
            cuda.cudnn_sdp_enabled(),
            cuda.flash_sdp_enabled(),
        )

    before = now()
    assert before == (False, False, True, True, True)
    for device, wanted in ((CPU, True), (torch.device("cuda"), False)):
        with deterministic(device, wanted):
            assert now() == before
    with deterministic(torch.device("cuda")):
        assert now() == (True, False, False, False, True)
    assert now() == before


def test_what_cannot_be_repeated_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    said = "cumsum_cuda_kernel does not have a deterministic implementation, but you set it. You can turn it off."
    with pytest.raises(RunError, match="cumsum_cuda_kernel") as told, deterministic(torch.device("cuda")):
        raise RuntimeError(said)
    assert "optimizer.deterministic: false" in told.value.remedy
    assert not torch.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="out of memory"), deterministic(torch.device("cuda")):
        raise RuntimeError("out of memory")


def test_a_cache_of_a_fixed_size_is_not_measured_on_the_card() -> None:
    share = {"gpu_memory_utilization": 0.4}
    assert memory_options(cuda=True, kv_cache_gib=0, **share) == share
    assert memory_options(cuda=False, kv_cache_gib=0, **share) == {"kv_cache_memory_bytes": 1 << 30}
    fixed = memory_options(cuda=True, kv_cache_gib=2.5, **share)
    assert fixed["kv_cache_memory_bytes"] == 5 << 29
    assert fixed["gpu_memory_utilization"] < 0.05


def test_a_context_that_is_too_long_is_told_before_a_server_starts(llama: Path, tmp_path: Path) -> None:
    limit = LlamaConfig.from_pretrained(llama).max_position_embeddings
    check_context(llama, limit)
    with pytest.raises(EngineError, match=f"beyond the {limit} tokens"):
        check_context(llama, limit + 1)
    check_context(tmp_path, limit + 1)  # no model: vLLM says so
    config = LlamaConfig.from_pretrained(llama)
    config.rope_parameters = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}
    config.save_pretrained(tmp_path)
    check_context(tmp_path, limit + 1)


@pytest.mark.parametrize("wanted", [True, False])
def test_all_that_is_learned_is_learned_so(
    wanted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from letters import RECIPE, register_letters

    register_letters()
    asked: list[tuple[str, torch.device, bool]] = []
    for place in ("trainers.run.lesson", "trainers.learn.learner"):

        def noted(device: torch.device, wanted: bool, place: str = place) -> Any:
            asked.append((place, device, wanted))
            return deterministic(device, wanted)

        monkeypatch.setattr(f"turnwise.{place}.deterministic", noted)
    recipe = yaml.safe_load(RECIPE) | {"updates": 2, "evaluate": {"every": 2, "dev": 2, "test": 2}}
    recipe["optimizer"] |= {"deterministic": wanted}
    train(recipe, out=tmp_path / "run", preflight=False, log=lambda line: None)
    assert asked == [
        *[("trainers.learn.learner", CPU, wanted)] * 2,  # the warm start's steps
        *[("trainers.run.lesson", CPU, wanted)] * 2,  # updates
    ]
