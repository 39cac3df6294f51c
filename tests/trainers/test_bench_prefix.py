"""The benchmark of trees beside rows: the same work by each, and bytes that are counted tensor by tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from turnwise.errors import TurnwiseError
from turnwise.trainers.bench.held import held_bytes
from turnwise.trainers.bench.prefix import PrefixSetting, Way, bench_prefix, compared
from turnwise.trainers.bench.prefix_batches import MadeBatch, Workload, of_script, of_shape


def test_a_tree_is_beside_each_way_of_rows_and_reads_fewer_tokens() -> None:
    made: list[MadeBatch] = []

    def make() -> MadeBatch:
        made.append(of_shape(Workload(((60, 4), (9, 3)), members=6)))
        return made[0]

    beside = {"filled": Way("filled"), "cut": Way("rows", 128)}
    found = compared(PrefixSetting(make, beside, minibatches=1), rounds=1)
    keys = {"times_rows", "share_of_token_ratio", "tokens_saved", "max_gradient_gap", "memory"}
    assert set(found) == {f"{name}: {key}" for name in beside for key in keys} | {"rounding"}
    assert 0 < found["rounding"].value < 2e-6
    tokens = int(made[0].batch.rows.length_R.sum())
    for name in beside:
        assert found[f"{name}: tokens_saved"].value == pytest.approx(1 - (60 + 6 * 16) / tokens, abs=1e-3)
        assert found[f"{name}: max_gradient_gap"].value < 2e-6
    assert found["filled: memory"].value < 0.6
    assert found["cut: memory"].value > 2 * found["filled: memory"].value, "two rows at a time"


def test_what_a_script_plays_has_a_model_of_its_vocabulary() -> None:
    made = of_script("shop/quick", 1, 2, tools="none", vocabulary=320)
    assert made.batch.turns.group_B.tolist() == [0, 0]
    assert int(made.batch.rows.token_RT.max()) < made.model.get_input_embeddings().weight.shape[0]  # pyright: ignore


def test_a_run_that_is_not_there_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(TurnwiseError, match="is no run with an episode log"):
        bench_prefix(str(tmp_path / "none"))


def test_bytes_are_counted_while_they_are_held_and_each_storage_once() -> None:
    x = torch.randn(100, 10)
    layer = torch.nn.Linear(10, 10)
    with held_bytes(layer) as meter:
        for _ in range(3):
            y = layer(x).exp()
            (y * y[:50].sum()).sum().backward()
    assert 2 * x.nbytes <= meter.most <= 2 * x.nbytes + 64, (
        "x and y, the slice of y aside; the weight is no activation"
    )
