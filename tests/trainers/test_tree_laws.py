"""Laws of rows that are read as a tree: what may not change a bit, what may change nothing but rounding, and how much rounding that is."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from hypothesis import given, settings
from hypothesis import strategies as st
from test_architectures import KNOWN
from test_learner import VOCAB, Measured, advantages, objective, spoken
from test_tree import CPU, KINDS, forked, forked_rows, learned, model_of
from test_whole_losses import LOSSES, aim, read_by
from torch import Tensor

from turnwise.errors import RecipeError, RunError
from turnwise.registry import Component
from turnwise.trainers.bench.architectures import tiny
from turnwise.trainers.learn import attention
from turnwise.trainers.learn.attention import TreeForm, by_mask, hidden_states_of, take_trees, why_not
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, collate, plain_rows
from turnwise.trainers.learn.model import _take_dropout_out
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.sync import check_learner
from turnwise.trainers.learn.tree import count_nodes, divided, tree_batches, tree_of


@pytest.fixture
def in_float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def gradients(
    model: Any, batch: TrainingBatch, advantage_BK: Tensor, *more: str, **options: Any
) -> list[Tensor]:
    learner = Measured(copy.deepcopy(model), OptimizerOptions(**options))
    learner.update(batch, advantage_BK, objective("clip", *more))
    return learner.gradients


def gap(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """The largest difference, of the largest entry."""
    largest = max(float(one.abs().max()) for one in theirs)
    pairs = zip(ours, theirs, strict=True)
    return max(float((one.double() - other.double()).abs().max()) for one, other in pairs) / largest


@settings(max_examples=100)
@given(forked_rows(), st.integers(1, 60))
def test_a_cut_computes_no_more_again_than_the_path_that_it_cuts(rows: TokenRows, most: int) -> None:
    every = torch.arange(len(rows.length_R))
    parts = list(tree_batches(rows.token_RT, rows.length_R, most, every))
    read = sum(count_nodes(rows.token_RT[part], rows.length_R[part]) for part in parts)
    again = read - count_nodes(rows.token_RT, rows.length_R)
    assert 0 <= again <= (len(parts) - 1) * int(rows.length_R.max())


def mixed(order: list[int]) -> tuple[TrainingBatch, Tensor]:
    """Two groups whose members come in some order, each with the advantages that are its own."""
    groups = [forked(1, 5), forked(2, 5)]
    advantage_BK = advantages(collate(groups), 3)
    moved = collate([[group[i] for i in order] for group in groups])
    return moved, advantage_BK[[i + 5 * g for g in (0, 1) for i in order]]


@pytest.mark.parametrize("most", [80, 10_000])
def test_the_same_rows_in_another_order_give_the_same_bits(
    random_model: Callable[..., Any], most: int
) -> None:
    model, found = random_model(), list[list[Tensor]]()
    for order in ([0, 1, 2, 3, 4], [3, 1, 4, 0, 2]):
        batch, advantage_BK = mixed(order)
        found.append(gradients(model, batch, advantage_BK, "entropy", share="tree", micro_tokens=most))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_leaves_may_divide_the_advantage_of_a_turn_that_they_share_in_any_way(
    random_model: Callable[..., Any], in_float64: None
) -> None:
    """A node has the sum of its rows' advantages, each of its own turn."""
    model, group = random_model().double(), forked(1, 2)
    batch = collate([group])
    shared = sum(
        one.reply[:3] == other.reply[:3]
        for one, other in zip(*(leaf.trajectory.turns for leaf in group), strict=True)
    )
    assert 0 < shared < 4
    found: list[list[Tensor]] = []
    for one, other in ((1.0, 2.0), (3.0, 0.0), (-1.0, 4.0), (1.0, 1.0)):
        advantage_BK = torch.zeros(2, 4)
        advantage_BK[:, shared - 1] = torch.tensor([one, other])
        found.append(gradients(model, batch, advantage_BK, share="tree"))
    assert gap(found[1], found[0]) < 1e-12
    assert gap(found[2], found[0]) < 1e-12
    assert gap(found[3], found[0]) > 0.1


def leaves(changed: bool) -> TokenRows:
    """A trunk with three leaves; the second may say something else, in as many tokens, which nobody else has."""
    trunk, said = [1, 2, 3, 4], [[5, 6, 7, 8], [9, 30, 31, 32], [10, 11, 12, 13]]
    if changed:
        said[1][1:] = [33, 34, 35]
    return plain_rows([trunk + leaf for leaf in said], [4, 4, 4])


def masked(tree: Any) -> Any:
    return lambda *given, **more: by_mask(tree, *given, **more)


@pytest.mark.parametrize("form", [None, masked], ids=["segments", "mask"])
def test_what_a_leaf_says_changes_no_bit_of_its_siblings(form: TreeForm | None) -> None:
    model, states = model_of("llama"), list[Tensor]()
    take_trees(model)
    with torch.no_grad():
        for changed in (False, True):
            rows = leaves(changed)
            tree = tree_of(rows.token_RT, rows.length_R)
            states.append(hidden_states_of(model, tree, CPU, form)[tree.node_RT])
    assert torch.equal(states[0][[0, 2]], states[1][[0, 2]])
    assert not torch.equal(states[0][1], states[1][1])


def test_no_gradient_of_a_leaf_reaches_what_its_sibling_says() -> None:
    model, rows = model_of("llama"), leaves(True)
    table = model.get_input_embeddings().weight
    logp_RT = Reader(CPU, 1.0, "float32", "tree").scores(model, rows).logp_RT
    (slope,) = torch.autograd.grad(logp_RT[[0, 2]].sum(), table)
    assert not slope[33:36].any()
    assert slope[1:5].any(1).all(), "but the trunk's"


@pytest.fixture(scope="module")
def batch() -> TrainingBatch:
    return collate([forked(1), forked(2), [spoken([(30, 3)], 9), spoken([(30, 2), (4, 4)], 10)]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("again", [False, True], ids=["", "checkpointing"])
def test_gradients_of_each_architecture_are_those_of_rows(
    batch: TrainingBatch, in_float64: None, kind: str, again: bool
) -> None:
    """Norms and rotary positions are computed in float32 whatever the model's type, which rounds trees and rows apart."""
    model = model_of(kind, vocab_size=VOCAB).double()
    if again:
        _take_dropout_out(model)
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
    rows = gradients(model, batch, advantages(batch, 3), "entropy", share="rows")
    for most in (10_000, 60):
        tree = gradients(model, batch, advantages(batch, 3), "entropy", share="tree", micro_tokens=most)
        assert gap(tree, rows) <= 5e-7


DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10_000.0}
USUAL = {"rope_type": "default", "rope_theta": 10_000.0}


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("llama", {"rope_parameters": DYNAMIC}, "rotary positions"),
        (
            "gemma3_text",
            {"rope_parameters": {"sliding_attention": USUAL, "full_attention": DYNAMIC}},
            "rotary positions",
        ),
        ("gemma2", {}, "attn_logit_softcapping"),
        ("mixtral", {}, "its config has num_"),
        ("mamba", {}, "its layers are"),
        ("lfm2", {}, "its layers are conv"),
    ],
)
def test_a_model_that_reads_rows_only_says_what_of_it_is_not_exact(
    kind: str, changes: dict[str, Any], said: str
) -> None:
    assert said in why_not(model_of(kind, **changes))


def test_learners_have_about_as_many_new_nodes_each_and_siblings_stay_together() -> None:
    groups = [[[g, *range(50, 70), leaf, leaf + 1] for leaf in range(8)] for g in range(1, 5)]
    rows = plain_rows([row for group in groups for row in group], [1] * 32)
    for count in (2, 4):
        parts = divided(rows.token_RT, rows.length_R, count, torch.arange(32))
        nodes = [count_nodes(rows.token_RT[part], rows.length_R[part]) for part in parts]
        assert nodes == [(21 + 8 * 2) * 4 // count] * count, "no group is divided"


@pytest.mark.parametrize("entry", LOSSES, ids=lambda entry: entry.name)
def test_in_float32_the_gradient_of_every_loss_is_that_of_rows_but_for_rounding(
    random_model: Callable[..., Any], batch: TrainingBatch, entry: Component
) -> None:
    """Up to 1e-6 here. Rows that are cut otherwise round apart too: `turnwise bench prefix` has both for larger batches."""
    model, other = random_model(), random_model(seed=5)
    ready = read_by(other, batch)
    rows, tree = (
        learned(copy.deepcopy(model), ready, aim(entry), other, share=share, micro_tokens=10_000)[0]
        for share in ("rows", "tree")
    )
    assert gap(tree, rows) <= 2e-6


# --- models that no config tells of ---------------------------------------------------------------------


@pytest.fixture
def nothing_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_rows_only", {})


def test_what_only_trying_shows_is_tried_before_a_run_and_reads_rows(nothing_tried: None) -> None:
    """Nemotron's layers drop the tree, and every token would see all others."""
    model, _ = tiny("nemotron")
    rows = plain_rows([[1, 2, 3, 4], [1, 2, 3, 5]], [1, 1])
    assert Reader(CPU, 1.0, "float32").shares(model, rows), "its config says nothing"
    before = model.config._attn_implementation
    check_learner(model)
    assert "its layers keep it from their attention" in why_not(model)
    assert model.config._attn_implementation == before
    assert not Reader(CPU, 1.0, "float32").shares(model, rows)
    with pytest.raises(RecipeError, match="reads rows only"):
        Reader(CPU, 1.0, "float32", "tree").shares(model, rows)


def test_an_encoder_whose_tokens_see_what_follows_them_is_refused(nothing_tried: None) -> None:
    model, _ = tiny("bert")
    with pytest.raises(RunError, match="what follows a token changes its log-probability") as refused:
        check_learner(model)
    assert "is_decoder" in refused.value.remedy


def test_a_model_whose_layers_drop_the_tree_does_not_learn_from_it_untried(nothing_tried: None) -> None:
    model, _ = tiny("nemotron")
    with pytest.raises(RecipeError, match="NemotronForCausalLM cannot be read as a tree") as refused:
        Reader(CPU, 1.0, "float32").scores(model, plain_rows([[1, 2, 3, 4], [1, 2, 3, 5]], [1, 1]))
    assert "optimizer.share: rows" in refused.value.remedy


def test_a_model_that_was_tried_reads_trees_as_before(nothing_tried: None) -> None:
    model = model_of("llama")
    check_learner(model)
    assert why_not(model) == ""
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.full  # it makes some two hundred models
@pytest.mark.parametrize("name", KNOWN)
def test_every_architecture_reads_trees_as_rows_or_rows_only(nothing_tried: None, name: str) -> None:
    try:
        model, _ = tiny(name)
        check_learner(model)
    except Exception as error:  # noqa: BLE001  sizes that do not fit this kind, or no learner's model
        pytest.skip(f"{type(error).__name__}: {error}"[:100])
    if not why_not(model):
        chance = random.Random(0)
        trunk = [chance.randrange(1, 64) for _ in range(24)]
        texts = [[*trunk[:n], *(chance.randrange(1, 64) for _ in range(33 - n))] for n in (24, 24, 11, 1)]
        rows = plain_rows(texts, [1] * 4)
        whole, tree = (
            Reader(CPU, 1.0, "float32", share).scores(model, rows).logp_RT for share in ("rows", "tree")
        )
        torch.testing.assert_close(tree, whole, rtol=0, atol=1e-4)
