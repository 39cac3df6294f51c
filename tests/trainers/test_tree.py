"""Rows that begin alike are read as a tree, and nothing but rounding tells it from reading every row whole."""

from __future__ import annotations

import copy
import dataclasses
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from hypothesis import given, settings
from hypothesis import strategies as st
from test_learner import Measured, advantages, objective, spoken, with_replies
from test_whole_losses import LOSSES, aim, of_one_sign, read_by
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from turnwise.agents.core import ROOT, Episode
from turnwise.envs.core import EndReason
from turnwise.errors import RecipeError
from turnwise.registry import Component, components
from turnwise.trainers.bench.held import held_bytes
from turnwise.trainers.check.small_policy import Words
from turnwise.trainers.learn.attention import (
    by_flex,
    by_mask,
    by_segments,
    hidden_states_of,
    take_trees,
    why_not,
)
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, collate, plain_rows
from turnwise.trainers.learn.objective import Objective
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.tree import count_nodes, divided, tree_batches, tree_of
from turnwise.trainers.signal.choose import ChosenSignal
from turnwise.trainers.signal.core import SignalContext, SignalSetup
from turnwise.trainers.signal.measure import Signals

CPU = torch.device("cpu")
SMALL = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
KINDS = {
    "llama": {**SMALL, "num_key_value_heads": 2},
    "qwen2": {**SMALL, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "qwen3": {**SMALL, "num_key_value_heads": 2, "head_dim": 8},
    "mistral": {**SMALL, "num_key_value_heads": 2, "sliding_window": 6},
    "gemma3_text": {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 6},
    "gpt2": {"vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128},
    "gpt_neox": SMALL,
}
REFUSED = {
    "mamba": {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    "mixtral": {**SMALL, "num_key_value_heads": 2, "num_local_experts": 2},
    "gemma2": {**SMALL, "num_key_value_heads": 2, "head_dim": 8},
    "lfm2": {**SMALL, "num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]},
}


def model_of(kind: str, **changes: Any) -> Any:
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(
            CONFIG_MAPPING[kind](**{**(KINDS | REFUSED)[kind], **changes})
        )
    return model.eval()


@st.composite
def forked_rows(draw: Callable[..., Any]) -> TokenRows:
    """Rows that leave one another at any place, equal ones and beginnings of others among them."""
    tokens = st.integers(0, 4)
    texts = [draw(st.lists(tokens, min_size=1, max_size=20))]
    for _ in range(draw(st.integers(0, 6))):
        trunk = draw(st.sampled_from(texts))
        common = draw(st.integers(0, len(trunk)))
        texts.append([*trunk[:common], *draw(st.lists(tokens, max_size=8))] or [1])
    return plain_rows(texts, [min(1, len(text) - 1) for text in texts])


# --- the tree of rows --------------------------------------------------------------------------------


@settings(max_examples=150)
@given(forked_rows(), st.randoms(use_true_random=False))
def test_a_node_is_a_distinct_prefix_whatever_the_order_of_rows(
    rows: TokenRows, chance: random.Random
) -> None:
    texts = [rows.token_RT[r, :n].tolist() for r, n in enumerate(rows.length_R.tolist())]
    tree = tree_of(rows.token_RT, rows.length_R)
    prefixes = {tuple(text[: i + 1]) for text in texts for i in range(len(text))}
    of_node: dict[int, tuple[int, ...]] = {}
    for r, text in enumerate(texts):
        for i in range(len(text)):
            node = int(tree.node_RT[r, i])
            assert of_node.setdefault(node, tuple(text[: i + 1])) == tuple(text[: i + 1])
            assert (int(tree.token_N[node]), int(tree.position_N[node])) == (text[i], i)
            assert int(tree.parent_N[node]) == (int(tree.node_RT[r, i - 1]) if i else -1)
    assert len(tree.segments) <= len(texts)
    assert len(of_node) == len(tree.token_N) == len(prefixes) == count_nodes(rows.token_RT, rows.length_R)
    order = [*range(len(texts))]
    chance.shuffle(order)
    moved = tree_of(rows.token_RT[order], rows.length_R[order])
    assert torch.equal(moved.token_N, tree.token_N)
    assert moved.segments == tree.segments
    assert torch.equal(moved.node_RT, tree.node_RT[order])


@settings(max_examples=100)
@given(forked_rows(), st.integers(1, 60), st.integers(1, 4))
def test_cuts_and_shares_have_every_row_once_and_stay_small(rows: TokenRows, most: int, count: int) -> None:
    every = torch.arange(len(rows.length_R))
    parts = list(tree_batches(rows.token_RT, rows.length_R, most, every))
    assert sorted(torch.cat(parts).tolist()) == every.tolist()
    for part in parts:
        assert len(part) == 1 or count_nodes(rows.token_RT[part], rows.length_R[part]) <= most
    shared = divided(rows.token_RT, rows.length_R, count, every)
    assert len(shared) == count
    assert sorted(torch.cat(shared).tolist()) == every.tolist()


# --- attention -----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(forked_rows(), st.sampled_from([None, 1, 3, 7]), st.sampled_from([1, 2]))
def test_segments_attend_as_the_mask_of_ancestors_does(
    rows: TokenRows, window: int | None, groups: int
) -> None:
    tree = tree_of(rows.token_RT, rows.length_R)
    make = torch.Generator().manual_seed(0)

    def drawn(heads: int) -> Tensor:
        shape = (1, heads, len(tree.token_N), 4)
        return torch.randn(shape, generator=make, dtype=torch.float64).requires_grad_()

    given = drawn(2), drawn(2 // groups), drawn(2 // groups)
    slope = torch.randn(1, len(tree.token_N), 2, 4, generator=make, dtype=torch.float64)
    found = []
    for form in (by_segments, by_mask):
        attended = form(tree, *given, window=window, scale=0.7)
        found.append([attended, *torch.autograd.grad((attended * slope).sum(), given)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(forked_rows(), st.sampled_from([None, 1, 3, 7]), st.sampled_from([1, 2]))
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_one_kernel_attends_as_the_mask_of_ancestors_does(
    rows: TokenRows, window: int | None, groups: int
) -> None:
    """Without gradients, which flex attention has on CUDA alone: benchmarks/gpu_card.py compares those there."""
    tree = tree_of(rows.token_RT, rows.length_R)
    make = torch.Generator().manual_seed(0)
    given = [
        torch.randn(1, heads, len(tree.token_N), 16, generator=make)
        for heads in (2, 2 // groups, 2 // groups)
    ]
    found = by_flex(tree)(*given, window=window, scale=0.7)
    torch.testing.assert_close(found, by_mask(tree, *given, window=window, scale=0.7), rtol=0, atol=1e-5)


def test_flex_attention_is_refused_where_it_cannot_learn() -> None:
    with pytest.raises(RecipeError, match="no backward pass on a CPU") as refused:
        Reader(CPU, 1.0, "float32", "flex")
    assert "optimizer.share: auto" in refused.value.remedy


class Written(TorchDispatchMode):
    """Counts the numbers that operations write."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        fresh = [x for x in (found if isinstance(found, tuple) else (found,)) if isinstance(x, Tensor)]
        self.count += sum(x.numel() for x in fresh if x._base is None)
        return found


def test_the_backward_pass_writes_what_segments_see_and_no_zeros_for_all_others() -> None:
    """Half of an update of a household was zeros, and the tree took twice the time of rows."""
    rows = plain_rows([[1, 2, 3, 4 + leaf, 5] for leaf in range(100)], [1] * 100)
    tree = tree_of(rows.token_RT, rows.length_R)
    given = [torch.randn(1, 1, len(tree.token_N), 4).requires_grad_() for _ in range(3)]
    said = by_segments(tree, *given).sum()
    with Written() as written:
        said.backward()
    assert given[1].grad is not None
    assert written.count < 20 * int(rows.length_R.sum()) * 4, "not a hundred times all nodes"


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_nodes_are_those_of_rows(kind: str) -> None:
    model, chance = model_of(kind), random.Random(1)
    assert why_not(model) == ""
    texts = [[chance.randrange(40) for _ in range(18)]]
    for _ in range(5):
        trunk = chance.choice(texts)
        texts.append(
            [
                *trunk[: chance.randrange(1, 18)],
                *(chance.randrange(40) for _ in range(chance.randrange(1, 12))),
            ]
        )
    rows = plain_rows(texts, [1] * len(texts))
    inside_RT = torch.arange(rows.token_RT.shape[1]) < rows.length_R[:, None]
    with torch.no_grad():
        whole = model.get_decoder()(input_ids=rows.token_RT, use_cache=False).last_hidden_state[inside_RT]
        take_trees(model)
        tree = tree_of(rows.token_RT, rows.length_R)
        found = hidden_states_of(model, tree, CPU)[tree.node_RT][inside_RT]
        again = model.get_decoder()(input_ids=rows.token_RT, use_cache=False).last_hidden_state[inside_RT]
    torch.testing.assert_close(found, whole, rtol=2e-5, atol=2e-5)
    assert torch.equal(again, whole), "rows are read as before"
    assert "turnwise" not in str(model.config.to_dict())


@pytest.mark.parametrize("kind", REFUSED)
def test_what_a_tree_would_not_be_exact_for_reads_rows(kind: str) -> None:
    model, rows = model_of(kind), plain_rows([[1, 2, 3, 4], [1, 2, 3, 5]], [1, 1])
    assert why_not(model)
    assert not Reader(CPU, 1.0, "float32").shares(model, rows)
    with pytest.raises(RecipeError, match="reads rows only"):
        Reader(CPU, 1.0, "float32", "tree").shares(model, rows)


# --- learning --------------------------------------------------------------------------------------------


def forked(seed: int, size: int = 4) -> list[Episode]:
    """A group whose members share a prompt and some turns, then tokens of one; the third repeats its beginning in a row."""
    chance, shape = random.Random(seed), [(12, 4), (5, 3), (6, 2), (3, 5)]
    found = [spoken(shape, seed)]
    for i in range(1, size):
        own, leaves = spoken(shape, 100 * seed + i), chance.randrange(4)
        trunk = [turn.reply for turn in found[0].trajectory.turns]
        replies = trunk[:leaves] + [turn.reply for turn in own.trajectory.turns[leaves:]]
        replies[leaves] = replies[leaves]._replace(prompt_ids=trunk[leaves].prompt_ids)
        if i == 2:
            said = [token for reply in replies[:2] for token in (*reply.prompt_ids, *reply.action_ids)]
            replies[2] = replies[2]._replace(prompt_ids=(*said[:9], *replies[2].prompt_ids), parent=ROOT)
        found.append(dataclasses.replace(with_replies(own, replies), end=EndReason.SOLVED if i % 2 else None))
    return found


@pytest.fixture(scope="module")
def batch() -> TrainingBatch:
    return collate([forked(1), forked(2), [spoken([(30, 3)], 9), spoken([(30, 2), (4, 4)], 10)]])


@pytest.fixture
def exact_norm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Transformers computes this norm in float32 whatever the model's type, which rounds trees and rows apart."""
    from transformers.models.llama import modeling_llama

    def forward(self: Any, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    monkeypatch.setattr(modeling_llama.LlamaRMSNorm, "forward", forward)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def learned(
    model: Any, batch: TrainingBatch, aims: Objective, reference: Any = None, **options: Any
) -> tuple[list[Tensor], dict[str, float], int]:
    """The gradients of an update, its metrics, and how many tokens were read."""
    learner = Measured(model, OptimizerOptions(**options), reference=reference)
    before = learner.reader.tokens_read
    metrics = learner.update(batch, of_one_sign(advantages(batch, 3)), aims)
    return learner.gradients, metrics, learner.reader.tokens_read - before


def assert_alike(tree: list[Tensor], rows: list[Tensor], tolerance: float) -> None:
    largest = max(float(one.abs().max()) for one in rows)
    gap = max(float((one - other).abs().max()) for one, other in zip(tree, rows, strict=True))
    assert largest > 0
    assert gap <= tolerance * largest, f"{gap / largest:.1e}"


@pytest.mark.parametrize("entry", LOSSES, ids=lambda entry: entry.name)
def test_the_gradient_of_every_loss_is_that_of_rows(
    random_model: Callable[..., Any], batch: TrainingBatch, exact_norm: None, entry: Component
) -> None:
    model, other = random_model().double(), random_model(seed=5).double()
    ready = read_by(other, batch)
    rows, told, read = learned(
        copy.deepcopy(model), ready, aim(entry), other, share="rows", micro_tokens=10_000
    )
    for most in (10_000, 60):
        tree, found, less = learned(
            copy.deepcopy(model), ready, aim(entry), other, share="tree", micro_tokens=most
        )
        assert_alike(tree, rows, 1e-12)
        assert found == pytest.approx(told, rel=1e-6, abs=1e-9)
        assert most < 100 or less < 0.8 * read


@pytest.mark.parametrize("entry", components("correction"), ids=lambda entry: entry.name)
@pytest.mark.parametrize("most", [60, 10_000])
def test_every_correction_is_that_of_rows(
    random_model: Callable[..., Any], batch: TrainingBatch, exact_norm: None, entry: Component, most: int
) -> None:
    model = random_model().double()
    aims = objective("clip", correction=entry.name, level="token" if entry.name != "none" else "")
    rows, _, _ = learned(copy.deepcopy(model), batch, aims, share="rows")
    tree, _, _ = learned(copy.deepcopy(model), batch, aims, share="tree", micro_tokens=most)
    assert_alike(tree, rows, 1e-12)


def read_signal(
    entry: Component, share: Any, seeded: Callable[[int], Any]
) -> tuple[dict[str, Tensor], list[Tensor], int, int]:
    """What a signal says of forked groups, the gradients of an update with its head, and how many tokens were read."""
    groups = [forked(1), forked(2)]
    batch = collate(groups)
    torch.set_default_dtype(torch.float64)
    setup = SignalSetup(
        needs=frozenset(entry.gives),
        width=64,
        device=CPU,
        seed=0,
        reader=Reader(CPU, 1.0, "float32", share),
        micro_tokens=200,
        copy_policy=lambda: seeded(2),
        load=lambda path: seeded(3),
        tokenizer=Words(),
    )
    one = Signals([ChosenSignal(entry, {})], setup)
    kind = torch.float32 if one.heads else torch.float64  # which is what heads compute in
    torch.set_default_dtype(kind)
    for head in one.heads:
        assert head.module is not None
        head.module.float()
    options = OptimizerOptions(share=share, micro_tokens=200)
    learner = Measured(seeded(0).to(kind), options, heads=one.heads, reference=seeded(5).to(kind))
    see = SignalContext(frozenset(entry.gives), learner, Words(), cast(Any, None), 256, {})
    ready, _ = one.measure(see, batch, groups)
    learner.update(ready, of_one_sign(advantages(ready, 3)), objective("clip"))
    read = learner.reader.tokens_read
    tokens = ready.turns.tokens.signals if ready.turns.tokens else {}
    return {**ready.turns.signals, **tokens}, learner.gradients, read, len(one.heads)


@pytest.mark.parametrize(
    "entry", [one for one in components("signal") if "gold" not in one.reads], ids=lambda entry: entry.name
)
def test_every_signal_is_that_of_rows_and_its_head_learns_the_same(
    random_model: Callable[..., Any], exact_norm: None, entry: Component
) -> None:
    """But for those that read gold answers, for which these groups have none."""
    rows, tree = (
        read_signal(entry, share, lambda seed: random_model(seed=seed).double()) for share in ("rows", "tree")
    )
    assert rows[0].keys() == tree[0].keys() >= {*entry.gives}
    close = 2e-6 if tree[3] else 1e-11
    for name, found in tree[0].items():
        torch.testing.assert_close(found.double(), rows[0][name].double(), rtol=1e-6, atol=close)
    assert_alike(tree[1], rows[1], close)
    assert tree[2] < 0.8 * rows[2], "as a tree"


@pytest.mark.parametrize("kind", ["lora", "checkpointing"])
def test_adapters_and_layers_that_are_computed_again(
    random_model: Callable[..., Any], batch: TrainingBatch, kind: str
) -> None:
    def made() -> Any:
        model = random_model()
        if kind == "checkpointing":
            model.gradient_checkpointing_enable({"use_reentrant": False})
            return model.train()
        from peft import LoraConfig, get_peft_model

        torch.manual_seed(0)
        config = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
        return get_peft_model(model, config).eval()

    aims = objective("clip", "kl", reference=True) if kind == "lora" else objective("clip", "entropy")
    rows, _, _ = learned(made(), batch, aims, share="rows")
    tree, _, _ = learned(made(), batch, aims, share="tree", micro_tokens=120)
    assert_alike(tree, rows, 5e-6)


def test_auto_takes_the_tree_where_it_saves_a_fifth(random_model: Callable[..., Any]) -> None:
    reader = Reader(CPU, 1.0, "float32")
    alike = plain_rows([[*range(1, 11), 11], [*range(1, 11), 12]], [1, 1])
    apart = plain_rows([[1, *range(1, 11)], [2, *range(1, 11)]], [1, 1])
    assert reader.shares(random_model(), alike)
    assert not reader.shares(random_model(), apart)
    mixed = plain_rows(
        [[*range(1, 11), 11], [*range(1, 11), 12], *([n, *range(1, 11)] for n in range(20, 26))], [1] * 8
    )
    assert not reader.shares(random_model(), mixed)
    assert reader.shares(random_model(), mixed, torch.tensor([0, 1])), "of the rows that are asked about"
    assert not reader.shares(random_model(), mixed, torch.tensor([2, 3]))
    scores = reader.scores(random_model(), alike).logp_RT
    torch.testing.assert_close(
        scores, Reader(CPU, 1.0, "float32", "rows").scores(random_model(), alike).logp_RT
    )
    assert reader.tokens_read == 12


def test_what_is_read_grows_with_what_is_said() -> None:
    """Thirty turns of ten tokens, before each of which five more are told: 300 + 30 · 15 tokens at most, not 30 · 155."""
    turns, told = 30, [7] * 5
    trunk = [token % 40 for token in range(10 * turns)]
    texts = [[*trunk[: 10 * k + 5], *told, *trunk[10 * k + 5 : 10 * k + 10]] for k in range(turns)]
    reader, rows = Reader(CPU, 1.0, "float32"), plain_rows(texts, [len(text) - 5 for text in texts])
    model = model_of("llama")
    for index_N in reader.cut(model, rows, 16384):
        reader.states(model, rows.select(index_N))
    assert reader.tokens_read <= len(trunk) + turns * 10


def anew(turns: int) -> Episode:
    """An episode whose every turn has a context of its own, of 512 tokens."""
    played = spoken([(500, 12)] * turns, 4)
    return with_replies(played, [turn.reply._replace(parent=ROOT) for turn in played.trajectory.turns])


@pytest.mark.full  # 64k tokens
@pytest.mark.slow
def test_an_episode_of_64k_tokens_in_many_rows_takes_the_memory_of_one_micro_batch(
    random_model: Callable[..., Any],
) -> None:
    most: dict[int, int] = {}
    for turns in (8, 128):
        learner = Measured(random_model(), OptimizerOptions(micro_tokens=2048))
        batch = collate([[anew(turns), spoken([(3, 2)], 1)]])
        with held_bytes(learner.model) as held:
            learner.update(batch, advantages(batch), objective("clip", "entropy"))
        assert learner.reader.tokens_read >= 512 * turns
        assert learner.gradients[0].abs().max() > 0
        most[turns] = held.most
    assert most[128] <= 1.02 * most[8]
