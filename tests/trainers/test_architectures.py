"""The learner is the model, whatever its architecture does to its logits; its weights arrive; what cannot be trained is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file, save_file

from turnwise.agents.engines.registry import check_model, check_names
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.models.loading import stored_names
from turnwise.agents.models.vocabulary import end_ids, keep_ends
from turnwise.agents.policies.model import ChatFormat
from turnwise.errors import EngineError, RunError, TurnwiseError
from turnwise.trainers.bench.architectures import NEAR, VOCABULARY, architectures, examine, tiny
from turnwise.trainers.learn.adapters import check_adapters
from turnwise.trainers.learn.model import hidden_states, load_model, own_logits, token_stats
from turnwise.trainers.learn.options import LoraOptions
from turnwise.trainers.learn.sync import check_learner, push_weights
from turnwise.trainers.learn.whole import published_names
from turnwise.trainers.run.alarms import alarm
from turnwise.trainers.run.checkpoint import save_model

NOBODY = SimpleNamespace(save_pretrained=lambda folder: None)
CPU = torch.device("cpu")
RECORD = Path(__file__).parents[2] / "benchmarks" / "architectures.json"
KNOWN = [row["architecture"] for row in json.loads(RECORD.read_text("utf-8"))["architectures"]]
"""Of the record, since transformers takes seconds to say which there are, in each worker that collects this file."""


@pytest.mark.parametrize(
    "name", ["hyperclovax", "recurrent_gemma", "gemma2", "mixtral", "gpt_neox", "cohere"]
)
def test_learner_engine_and_checkpoint_are_the_model(name: str) -> None:
    found = examine(name)
    assert found.holds, found
    assert not found.refused
    assert bool(found.scales) == (name not in ("mixtral", "gpt_neox"))


@pytest.mark.full
def test_every_architecture_is_in_the_record() -> None:
    assert [*architectures()] == KNOWN, "python benchmarks/architectures.py > benchmarks/architectures.json"


@pytest.mark.full  # its result is benchmarks/architectures.json
@pytest.mark.parametrize("name", KNOWN)
def test_every_architecture_that_can_be_made_holds_or_is_refused(name: str) -> None:
    found = examine(name)
    if found.not_made:
        pytest.skip(found.not_made)
    assert found.holds, found


def test_gradients_go_through_the_models_own_logits_in_pieces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = tiny("gemma2")
    token_RT = torch.arange(2, 42).reshape(2, 20)

    def gradient() -> Any:
        model.zero_grad()
        hidden_ND = hidden_states(model, token_RT)[:, :-1].flatten(0, 1)
        token_stats(model, hidden_ND, token_RT[:, 1:].flatten(), 0.7).logp_N.sum().backward()
        return [weight.grad.clone() for weight in model.parameters()]

    whole = gradient()
    model.zero_grad()
    logp = (model(input_ids=token_RT, use_cache=False).logits[:, :-1] / 0.7).log_softmax(-1)
    logp.gather(-1, token_RT[:, 1:, None]).sum().backward()
    torch.testing.assert_close([weight.grad for weight in model.parameters()], whole)
    monkeypatch.setattr("turnwise.trainers.learn.model.LARGE", 5 * VOCABULARY)
    torch.testing.assert_close(gradient(), whole)
    assert own_logits(model, hidden_states(model, token_RT)[0, :0]).shape == (0, VOCABULARY)


def test_a_learner_of_another_distribution_is_refused_by_name() -> None:
    model, _ = tiny("llama")
    model.get_output_embeddings().forward = lambda hidden: torch.zeros(*hidden.shape[:-1], VOCABULARY)
    model.forward = lambda **_: SimpleNamespace(logits=torch.randn(2, 24, VOCABULARY))
    with pytest.raises(RunError, match="LlamaForCausalLM"):
        check_learner(model)


def test_a_forward_pass_of_another_form_is_refused_by_name() -> None:
    model, _ = tiny("llama")
    model.get_decoder = lambda: model  # which answers with logits
    with pytest.raises(RunError, match="LlamaForCausalLM cannot be trained: AttributeError"):
        check_learner(model)


def test_a_mixture_is_pushed_to_the_torch_engine(tmp_path: Path) -> None:
    model, _ = tiny("mixtral")
    save_model(tmp_path, model, NOBODY, ChatFormat())
    engine = TorchEngine(str(tmp_path), device="cpu", context_length=64)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.1)
    assert push_weights(model, engine, 1).max_logp_gap <= NEAR
    engine.close()


def test_vllm_on_a_cpu_refuses_mixtures_before_anything_is_spent() -> None:
    mixture, dense = tiny("mixtral")[0].config, tiny("llama")[0].config
    with pytest.raises(EngineError, match="mixture of experts"):
        check_model("vllm", mixture, "cpu")
    check_model("vllm", mixture, "cuda")
    check_model("vllm", dense, "cpu")
    check_model("torch", mixture, "cpu")


PUBLISHED = {
    "qwen3_moe": "model.layers.0.mlp.experts.1.gate_proj.weight",
    "mixtral": "model.layers.0.block_sparse_moe.experts.1.w1.weight",
    "qwen2_moe": "model.layers.0.mlp.experts.1.up_proj.weight",
    "olmoe": "model.layers.0.mlp.experts.1.down_proj.weight",
    "gpt_oss": "model.layers.0.mlp.experts.gate_up_proj",
}
"""How published checkpoints of mixtures name a weight of an expert, which is how vLLM's loaders ask for it."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_mixtures_are_published_under_the_names_of_their_files_and_others_are_refused(
    name: str, tmp_path: Path
) -> None:
    model, _ = tiny(name)
    save_model(tmp_path, model, NOBODY, ChatFormat())
    names = published_names(model)
    assert PUBLISHED[name] in names
    assert names == stored_names(tmp_path)
    check_names("vllm", lambda: names, str(tmp_path))
    save_file(
        {f"text.{key}": tensor for key, tensor in load_file(tmp_path / "model.safetensors").items()},
        tmp_path / "model.safetensors",
    )
    with pytest.raises(
        EngineError, match=rf"other names in training than in its files: .*, of {len(names)}\."
    ):
        check_names("vllm", lambda: names, str(tmp_path))
    check_names("torch", lambda: names, str(tmp_path))


def test_adapters_and_tied_ends_change_no_published_name(tied: Path) -> None:
    model = load_model(str(tied), CPU, lora=LoraOptions(2, 4, ["q_proj"]))
    assert published_names(model) == stored_names(tied)


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, _ = tiny("gemma2")
    folder = tmp_path_factory.mktemp("tied")
    save_model(folder, model, NOBODY, ChatFormat())
    return folder


@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_adapters_on_tied_ends_are_refused(tied: Path, target: str) -> None:
    with pytest.raises(RunError, match=rf"{target}(.|\n)*is tied(.|\n)*q_proj"):
        check_adapters(tied, LoraOptions(4, 8, ["q_proj", target]))


def test_unknown_targets_are_named_with_the_layers_that_there_are(tied: Path) -> None:
    with pytest.raises(
        RunError, match=r"no layer query(.|\n)*down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj"
    ):
        check_adapters(tied, LoraOptions(4, 8, ["query"]))
    with pytest.raises(RunError, match="no layer layers"):  # a list of blocks, which can have none
        check_adapters(tied, LoraOptions(4, 8, ["layers"]))
    check_adapters(tied, LoraOptions(4, 8, ["q_proj", "self_attn.v_proj"]))
    load_model(tied, CPU, LoraOptions(4, 8, ["q_proj", "self_attn.v_proj"]))
    check_adapters(tied, LoraOptions(4, 8, "all-linear"))


def test_a_checkpoint_says_how_it_is_sampled_from_and_where_it_ends(tmp_path: Path) -> None:
    model, _ = tiny("llama")
    model.generation_config.temperature = 0.6  # which its own method refuses to save without do_sample
    keep_ends(model, {9, 3})
    save_model(tmp_path, model, NOBODY, ChatFormat())
    assert set(end_ids(tmp_path)) >= {3, 9}
    again = load_model(tmp_path, CPU)
    assert (again.generation_config.eos_token_id, again.generation_config.temperature) == ([3, 9], 0.6)


def test_weights_that_a_folder_lacks_are_named_and_not_drawn_at_random(tmp_path: Path) -> None:
    model, _ = tiny("llama")
    save_model(tmp_path, model, NOBODY, ChatFormat())
    file = tmp_path / "model.safetensors"
    kept = load_file(file)
    del kept["model.layers.1.mlp.up_proj.weight"]
    save_file(kept, file, metadata={"format": "pt"})
    with pytest.raises(TurnwiseError, match=r"layers\.1\.mlp\.up_proj\.weight would be drawn at random"):
        load_model(tmp_path, CPU)


def test_a_correction_far_from_one_is_said_aloud_where_the_policy_sampled_itself() -> None:
    def recipe(**of: Any) -> Any:
        return SimpleNamespace(
            scale=SimpleNamespace(staleness=of.get("staleness", 0)), sources=of.get("sources", ())
        )

    assert "0.012" in alarm(recipe(), {"correction": 0.012})
    assert not alarm(recipe(), {"correction": 0.99})
    assert not alarm(recipe(), {})
    assert not alarm(recipe(staleness=1), {"correction": 0.5})
    assert not alarm(recipe(sources=("stored",)), {"correction": 0.5})
