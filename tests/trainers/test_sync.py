"""Weights reach the engine, and the canary says so; where they do not, it stops the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.errors import EngineError
from turnwise.trainers.learn.sync import (
    canary_sequences,
    check_canary,
    push_weights,
    trainer_logprobs,
)
from turnwise.trainers.learn.trainable_engine import check_trainable
from turnwise.trainers.learn.whole import checkpoint_tensors

CONTEXT = 256


@pytest.fixture(params=["torch", pytest.param("vllm", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest, tied_checkpoint: Path) -> Any:
    """An engine with weights of its own, left by whatever test came before."""
    if request.param == "vllm":
        return request.getfixturevalue("vllm_engine")
    return TorchEngine(tied_checkpoint, device="cpu", context_length=CONTEXT, max_sequences=8)


@pytest.fixture
def model(random_model: Callable[..., Any]) -> Any:
    """Other weights than the engine's."""
    return random_model(seed=1)


@pytest.fixture(autouse=True)
def _restored(request: pytest.FixtureRequest, random_model: Callable[..., Any]) -> Any:
    """The session's vLLM engine gets its first weights back."""
    yield
    if "vllm" in request.node.name:
        push_weights(random_model(), request.getfixturevalue("vllm_engine"), 0)


def test_a_push_is_proved(engine: Any, model: Any) -> None:
    with pytest.raises(EngineError, match="other weights"):
        check_canary(model, engine, 1)
    report = push_weights(model, engine, 1)
    assert report.max_logp_gap < 1e-4
    assert report.version == engine.version == 1


def test_what_was_cached_with_old_weights_is_forgotten(engine: Any, model: Any) -> None:
    async def answer(prompt: list[int]) -> Any:
        return await engine.generate(prompt, Sampling(max_tokens=8), stop_ids=(), seed=0)

    prompt = list(range(3, 80))
    before = asyncio.run(answer(prompt))
    push_weights(model, engine, 4)
    after = asyncio.run(answer(prompt))
    assert (before.versions, after.versions) == (((0, engine.version - 4),), ((0, 4),))
    with torch.no_grad():
        logp = model(torch.tensor([[*prompt, *after.token_ids]])).logits[0].log_softmax(-1)
    expected = [logp[len(prompt) + i - 1, token].item() for i, token in enumerate(after.token_ids)]
    assert list(after.logprobs) == pytest.approx(expected, abs=1e-3)


async def _changed_under_way(
    engine: Any, after: Any, prompts: list[list[int]], kv: Any
) -> tuple[list[Completion], Completion]:
    """Completions under whose way the weights change, from another thread, and one that begins afterwards."""

    def ask(prompt: list[int], tokens: int) -> Any:
        return engine.generate(prompt, Sampling(max_tokens=tokens), stop_ids=(), seed=len(prompt))

    under_way = [asyncio.create_task(ask(prompt, 60 + 5 * i)) for i, prompt in enumerate(prompts)]
    await ask(prompts[0][:9], 20)  # as many tokens later
    report = await asyncio.to_thread(push_weights, after, engine, engine.version + 1, kv=kv)
    assert report.max_logp_gap < 1e-4, "the canary is read between two steps too"
    # While the others run: the same prefix, which must not be read from what old weights computed.
    later = asyncio.create_task(ask([*prompts[0], 7, 8], 8))
    return await asyncio.gather(*under_way), await later


def _gaps(prompts: list[list[int]], found: list[Completion], weights: dict[int, Any]) -> dict[int, float]:
    """For each version, the largest difference of a token's log-probability to that of the named weights."""
    largest = dict.fromkeys(weights, 0.0)
    for prompt, one in zip(prompts, found, strict=True):
        ends = [*(span.start for span in one.versions[1:]), len(one.token_ids)]
        for span, end in zip(one.versions, ends, strict=True):
            with torch.no_grad():
                ids = torch.tensor([[*prompt, *one.token_ids]])
                logp = weights[span.version](ids).logits[0].log_softmax(-1)
            for i in range(span.start, end):
                expected = logp[len(prompt) + i - 1, one.token_ids[i]].item()
                largest[span.version] = max(largest[span.version], abs(expected - one.logprobs[i]))
    return largest


@pytest.mark.parametrize("kv", ["recompute", "keep"])
def test_each_span_is_of_the_weights_that_it_names(
    engine: Any, model: Any, random_model: Callable[..., Any], kv: str
) -> None:
    push_weights(model, engine, 10)
    other = random_model(seed=2)
    prompts = [[3 + (7 * i + j) % 300 for j in range(20 + 6 * i)] for i in range(6)]
    found, later = asyncio.run(_changed_under_way(engine, other, prompts, kv))
    for one in found:
        assert [span.version for span in one.versions] == [10, 11], "the weights changed in its middle"
        assert 0 < one.versions[1].start < len(one.token_ids)
    gaps = _gaps(prompts, found, {10: model, 11: other})
    assert gaps[10] < 1e-4
    if kv == "recompute":
        assert gaps[11] < 1e-4
    else:
        assert gaps[11] > 0.05, "old keys and values are still read"
    assert later.versions == ((0, 11),)
    assert _gaps([[*prompts[0], 7, 8]], [later], {11: other})[11] < 1e-4
    assert engine.version == 11


def test_weights_change_under_one_version_after_the_other(
    engine: Any, model: Any, random_model: Callable[..., Any]
) -> None:
    push_weights(model, engine, 20)
    weights = {20: model, **{21 + i: random_model(seed=3 + i) for i in range(3)}}

    async def play() -> Completion:
        long = asyncio.create_task(engine.generate([5, 6, 7], Sampling(max_tokens=120), stop_ids=(), seed=1))
        for version in (21, 22, 23):
            await engine.generate([9, 9], Sampling(max_tokens=15), stop_ids=(), seed=version)
            await asyncio.to_thread(
                engine.load_weights, checkpoint_tensors(weights[version]), version, kv="recompute"
            )
        return await long

    one = asyncio.run(play())
    assert [span.version for span in one.versions] == [20, 21, 22, 23]
    assert max(_gaps([[5, 6, 7]], [one], weights).values()) < 1e-4


def test_a_model_that_is_shared_does_not_change_under_way(model: Any) -> None:
    engine = TorchEngine(model, context_length=CONTEXT)
    with pytest.raises(EngineError, match="A shared model changes"):
        engine.load_weights([], 1, kv="recompute")
    engine.load_weights([], 1)
    assert engine.version == 1


class WithoutKv:
    """An engine of somebody else's, whose weights do not change in flight."""

    dtype = "float32"

    def __init__(self, engine: TorchEngine) -> None:
        self.engine = engine
        self.score = engine.score

    def load_weights(self, weights: Any, version: int) -> None:
        self.engine.load_weights(weights, version)


def test_an_engine_without_kv_trains_where_nothing_changes_in_flight(
    tied_checkpoint: Path, model: Any
) -> None:
    theirs: Any = WithoutKv(TorchEngine(tied_checkpoint, device="cpu", context_length=CONTEXT))
    assert push_weights(model, check_trainable(theirs, "theirs", in_flight=False), 1).max_logp_gap < 1e-4
    with pytest.raises(
        EngineError, match="engine theirs cannot change its weights under requests"
    ) as refused:
        check_trainable(theirs, "theirs", in_flight=True)
    assert "scale.staleness to 0" in refused.value.remedy


def test_an_engine_that_only_samples_is_refused(model: Any) -> None:
    with pytest.raises(EngineError, match="has no dtype and no load_weights and no score"):
        check_trainable(object(), "theirs", in_flight=False)


def test_the_tied_head_is_handed_over(model: Any) -> None:
    assert "lm_head.weight" in dict(checkpoint_tensors(model))


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="the packed head is the CPU's")
def test_vllm_keeps_a_stale_head_and_the_canary_sees_it(vllm_engine: Any, model: Any) -> None:
    """vLLM's trap on CPUs: without ``lm_head.weight`` a tied head keeps its old weights."""
    headless = ((name, tensor) for name, tensor in checkpoint_tensors(model) if name != "lm_head.weight")
    vllm_engine.load_weights(headless, 2)
    with pytest.raises(EngineError, match=r"lm_head\.weight too"):
        check_canary(model, vllm_engine, 2)
    assert push_weights(model, vllm_engine, 3).max_logp_gap < 1e-4


@pytest.mark.parametrize("damage", ["noise", "zero", "nan", "swapped"])
def test_a_corrupted_tensor_is_seen(engine: Any, model: Any, damage: str) -> None:
    broken = {name: tensor.clone() for name, tensor in checkpoint_tensors(model)}
    projection = broken["model.layers.1.mlp.down_proj.weight"]
    if damage == "noise":
        projection += 0.05 * torch.randn(projection.shape, generator=torch.Generator().manual_seed(0))
    elif damage == "zero":
        projection.zero_()
    elif damage == "nan":
        projection[3, 5] = torch.nan
    else:
        first, second = (broken[f"model.layers.{i}.self_attn.o_proj.weight"] for i in (0, 1))
        first.copy_(second)
    engine.load_weights(broken.items(), 5)
    with pytest.raises(EngineError, match="other weights"):
        check_canary(model, engine, 5)


def test_adapters_arrive_merged_and_the_model_keeps_them(engine: Any, model: Any) -> None:
    peft = pytest.importorskip("peft")
    push_weights(model, engine, 6)
    config = peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.3, target_modules=["q_proj", "down_proj"])
    lora = peft.get_peft_model(model, config)
    with torch.no_grad():
        for name, parameter in lora.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(0))
    lora.train()
    before = {name: tensor.clone() for name, tensor in lora.state_dict().items()}
    with pytest.raises(EngineError, match="other weights"):
        check_canary(lora, engine, 7)
    assert push_weights(lora, engine, 7).max_logp_gap < 1e-4
    assert lora.training
    assert lora.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in lora.state_dict().items())


def test_merged_tensors_are_the_checkpoint_s(random_model: Callable[..., Any]) -> None:
    peft = pytest.importorskip("peft")
    plain = {
        name: tuple(tensor.shape) for name, tensor in checkpoint_tensors(random_model("qwen2", tied=False))
    }
    for options in ({}, {"use_dora": True}, {"modules_to_save": ["lm_head"]}):
        config = peft.LoraConfig(r=2, target_modules=["q_proj", "up_proj"], **options)
        lora = peft.get_peft_model(random_model("qwen2", tied=False), config)
        assert {name: tuple(tensor.shape) for name, tensor in checkpoint_tensors(lora)} == plain, options


def test_a_shared_model_needs_no_copy(model: Any) -> None:
    engine = TorchEngine(model, context_length=CONTEXT, max_sequences=4)
    with torch.no_grad():
        model.model.norm.weight.mul_(1.3)
    assert push_weights(model, engine, 1).max_logp_gap < 1e-5
    assert engine.model is model


def test_weights_of_another_model_are_refused(
    tied_checkpoint: Path, random_model: Callable[..., Any]
) -> None:
    engine = TorchEngine(tied_checkpoint, device="cpu", context_length=CONTEXT)
    with pytest.raises(EngineError, match=r"do not fit.*bias"):
        push_weights(random_model("qwen2"), engine, 1)


def test_the_canary_s_tokens_change_with_the_version() -> None:
    first, again, other = canary_sequences(320, 1), canary_sequences(320, 1), canary_sequences(320, 2)
    assert first == again
    assert first != other
    assert all(0 <= token < 320 for sequence in first for token in sequence)


# --- what rounding explains ----------------------------------------------------------------------


@pytest.fixture
def sure(random_model: Callable[..., Any]) -> Any:
    """A model as sure of itself as a trained one: its logits are large, and what rounding does to them too."""
    model = random_model("qwen2", seed=2)
    with torch.no_grad():
        model.model.norm.weight.mul_(3)
    return model


def half_engine(model: Any, folder: Path, dtype: str) -> TorchEngine:
    model.save_pretrained(folder)
    return TorchEngine(folder, device="cpu", dtype=dtype, context_length=CONTEXT, max_sequences=4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_no_engine_is_blamed_for_its_type(sure: Any, tmp_path: Path, dtype: str) -> None:
    engine = half_engine(sure, tmp_path, dtype)
    gaps = [push_weights(sure, engine, version).max_logp_gap for version in range(40)]
    if dtype == "bfloat16":
        assert max(gaps) > 0.15, "a limit of so many nats for every model would have ended the run"


def test_weights_kept_in_a_half_under_adapters_are_not_blamed_either(sure: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    engine = half_engine(sure, tmp_path, "bfloat16")
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"])
    lora = peft.get_peft_model(sure.to(torch.bfloat16), config, autocast_adapter_dtype=True)
    with torch.no_grad():
        for name, parameter in lora.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1, generator=torch.Generator().manual_seed(0))
    for version in range(40):
        push_weights(lora, engine, version)


def test_weights_of_before_are_seen_in_a_half_too(sure: Any, tmp_path: Path) -> None:
    engine = half_engine(sure, tmp_path, "bfloat16")
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in sure.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=noise) * parameter.abs() * 0.1)
    for version in range(20):
        with pytest.raises(EngineError, match="other weights"):
            check_canary(sure, engine, version)


class OffIn(TorchEngine):
    """An engine that scores wrongly in so many orders of the tokens, as rounding makes a mixture of experts do in one of ten."""

    orders = 1
    asked = 0

    def score(self, sequences: Any) -> list[tuple[float, ...]]:
        self.asked += 1
        off = 3.0 if self.asked <= self.orders else 0.0
        return [(found[0] - off, *found[1:]) for found in super().score(sequences)]


def test_one_order_of_the_tokens_alone_blames_no_engine(model: Any) -> None:
    engine = OffIn(model, context_length=CONTEXT)
    check_canary(model, engine, 1)
    assert engine.asked == 2
    engine.orders = engine.asked = 0
    check_canary(model, engine, 1)
    assert engine.asked == 1, "an engine that agrees is not asked again"
    engine.orders, engine.asked = 100, 0
    with pytest.raises(EngineError, match="in 4 orders of the tokens"):
        check_canary(model, engine, 1)


def test_other_orders_have_the_same_tokens() -> None:
    """So that a wrong row of an embedding is wrong in all of them."""
    first, second = ([*chain(*canary_sequences(320, 1, attempt))] for attempt in (0, 1))
    assert first != second
    assert sorted(first) == sorted(second)


def test_weights_are_put_back_when_a_module_fails(model: Any) -> None:
    weights = dict(model.named_parameters())
    model.model.layers[1].mlp.down_proj.forward = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        trainer_logprobs(model, canary_sequences(320, 1), computed_in=torch.bfloat16)
    assert all(weights[name] is found for name, found in model.named_parameters())


def test_looking_at_the_canary_leaves_no_hook(model: Any) -> None:
    engine = TorchEngine(model, context_length=CONTEXT)
    push_weights(model, engine, 1)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
