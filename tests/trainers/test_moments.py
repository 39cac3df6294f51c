"""Moments in eight bits: refused before anything is spent where they cannot be had, small, and the same each time."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from test_learner import advantages, objective, spoken
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.optimizer import moments_of, restore_moments
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.recipe import compatible
from turnwise.trainers.recipe.load import load_recipe

HERE = pytest.mark.skipif(
    find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed: pip install 'turnwise[moments]'"
)


def test_a_recipe_is_refused_where_the_library_is_missing_or_weights_are_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(RecipeError, match="'bitsandbytes' is not installed") as refused:
        load_recipe("shop-quick", {"optimizer.moments": "int8"})
    assert "turnwise[moments]" in str(refused.value)
    monkeypatch.setattr(compatible, "eight_bits", lambda: None)
    assert load_recipe("shop-quick", {"optimizer.moments": "int8"}).optimizer.moments == "int8"
    with pytest.raises(RecipeError, match="would cut"):
        load_recipe(
            "shop-quick", {"optimizer.moments": "int8", "scale.learners": 2, "scale.weights": "sharded"}
        )


def test_moments_of_the_other_kind_are_refused(random_model: Callable[..., Any]) -> None:
    learner = Learner(random_model(), OptimizerOptions())
    name = learner.weights[0].names()[0]
    with pytest.raises(KeyError, match="of the other kind"):
        restore_moments(learner.optimizer, learner.weights, {f"0/{name}/state1": torch.zeros(2)})


class _WholeCounts(torch.optim.Optimizer):
    """Keeps what bitsandbytes' AdamW keeps: a count of steps that is a Python int, and a moment of another name."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})

    def step(self, closure: Any = None) -> None:
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            state["step"] = state.get("step", 0) + 1
            state["state1"] = torch.full(parameter.shape, float(state["step"]))


@pytest.mark.parametrize("kind", [_WholeCounts, torch.optim.AdamW])
def test_what_is_restored_has_the_types_and_values_that_were_kept(
    kind: Any, random_model: Callable[..., Any]
) -> None:
    """A count that is an int goes to a kernel as one; AdamW's own is a tensor in float32 and stays one."""
    learner = Learner(random_model(), OptimizerOptions())
    optimizers = [kind(learner.weights[0].trainable()) for _ in range(2)]
    for parameter in learner.weights[0].trainable():
        parameter.grad = torch.ones_like(parameter)
    for _ in range(3):
        optimizers[0].step()
    restore_moments(optimizers[1], learner.weights, moments_of(optimizers[0], learner.weights))
    for parameter in learner.weights[0].trainable():
        kept, found = (one.state[parameter] for one in optimizers)
        assert kept.keys() == found.keys()
        for name in kept:
            assert type(found[name]) is type(kept[name]), name
            assert torch.equal(torch.as_tensor(found[name]), torch.as_tensor(kept[name])), name
            assert torch.as_tensor(found[name]).dtype == torch.as_tensor(kept[name]).dtype, name


def learner_of(model: Any, moments: Any) -> Learner:
    return Learner(
        copy.deepcopy(model),
        OptimizerOptions(moments=moments, learning_rate=1e-3, weight_decay=0.1, minibatches=2),
    )


def moved(learner: Learner, start: Any) -> Tensor:
    pairs = zip(learner.model.parameters(), start.parameters(), strict=True)
    return torch.cat([(x - y).detach().flatten() for x, y in pairs])


@HERE
@pytest.mark.parametrize("lora", [False, True])
def test_eight_bits_step_nearly_as_float32_does_and_a_resumed_learner_has_the_same_bits(
    random_model: Callable[..., Any], lora: bool
) -> None:
    model: Any = random_model()
    if lora:
        from peft import LoraConfig, get_peft_model

        torch.manual_seed(0)
        model = get_peft_model(
            model,
            LoraConfig(r=64, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False),
        )
    batch: TrainingBatch = collate([[spoken([(9, 6), (4, 5)], i) for i in range(4)] for _ in range(2)])
    found: dict[str, Learner] = {}
    for name in ("float32", "int8", "again", "resumed"):
        found[name] = learner = learner_of(model, "float32" if name == "float32" else "int8")
        for update in range(4):
            if name == "resumed" and update == 2:
                kept = {key: x.clone() for key, x in moments_of(learner.optimizer, learner.weights).items()}
                found[name] = resumed = learner_of(learner.model, "int8")
                restore_moments(resumed.optimizer, resumed.weights, kept)
                learner = resumed
            learner.update(batch, advantages(batch), objective("clip", "entropy"))
    exact, rounded = moved(found["float32"], model), moved(found["int8"], model)
    assert float(torch.cosine_similarity(exact, rounded, dim=0)) > 0.98
    for name in ("again", "resumed"):
        assert torch.equal(moved(found[name], model), rounded), name
    kinds = {
        key.rpartition("/")[2]: x.dtype
        for key, x in moments_of(found["int8"].optimizer, found["int8"].weights).items()
    }
    assert kinds["state1"] in (torch.uint8, torch.float32), "matrices and vectors"
    sizes = {
        name: sum(x.nbytes for x in moments_of(found[name].optimizer, found[name].weights).values())
        for name in ("float32", "int8")
    }
    assert sizes["int8"] < 0.5 * sizes["float32"], "scales and tables of small matrices count here"
