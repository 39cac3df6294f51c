"""Every part that is registered can be explained, and the shipped recipes read well."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.registry import components
from turnwise.trainers.recipe.explain import WIDTH, explain, explain_recipe
from turnwise.trainers.recipe.load import load_recipe, recipe_names
from turnwise.trainers.recipe.part import LossPart, Part

SINGLE = ("reward", "filter", "credit", "correction", "reduce")


@pytest.mark.parametrize("seam", [*SINGLE, "loss"])
def test_every_part_can_be_explained(seam: str) -> None:
    recipe = load_recipe("shop-quick")
    for entry in components(seam):
        part = [LossPart(name=entry.name, weight=0.25)] if seam == "loss" else Part(name=entry.name)
        part = [part] if seam == "reward" else part
        text = explain_recipe(recipe.model_copy(update={seam: part}))
        assert f"{seam}: {entry.name}(" in text
        assert entry.summary.replace("``", "`") in text
        assert ">>>" not in text
        assert all(f"{name}={default}" in text for name, default in entry.options.items())
        if seam == "loss":
            assert (f"0.25·L_{entry.name}(M)" if entry.whole else f"0.25·ℓ_{entry.name}(t)") in text
        if entry.bias:
            assert entry.bias in " ".join(text.split())


@pytest.mark.parametrize("name", recipe_names())
def test_shipped_recipes_read_well(name: str) -> None:
    text = explain(name)
    assert text.startswith(load_recipe(name).about[:30])
    assert max(map(len, text.splitlines())) <= WIDTH + 16
    assert "\n\n\n" not in text
    assert text.endswith("\n")


def test_the_formula_says_what_is_descended() -> None:
    text = explain("shop-quick")
    assert "L(θ) = Σ_t w_t·[ℓ_clip(t) + 0.001·ℓ_entropy(t)]\n" in text
    assert "π_ref" not in text
    assert "2 AdamW steps at rate 0.0005" in text
    changed = {
        "credit": "gae",
        "loss": [{"name": "clip", "weight": -2}, "kl"],
        "optimizer.value_weight": 0.25,
    }
    text = explain("shop-quick", **changed)
    assert "Σ_t w_t·[− 2·ℓ_clip(t) + ℓ_kl(t)] + 0.25·mean_k 2|τ − 1[G_k < V(s_k)]|·(V(s_k) − G_k)²" in text
    assert "π_ref  the model after the warm start, frozen" in text
    assert "V, G" in text


def test_a_declared_bias_is_that_of_the_rules_own_options() -> None:
    def said(**keys: Any) -> str:
        return " ".join(explain("shop-quick", **keys).split())

    declared = "As an estimate of the policy gradient: unbiased"
    plain, own = said(), said(credit={"name": "return_to_go", "discount": 1.0})
    assert plain == own
    assert f"{declared}. Of an agent" in plain
    assert f"{declared}: up to the factor 1/length." in plain
    other = said(credit={"name": "return_to_go", "discount": 0.9})
    assert f"{declared}. Of an agent" not in other
    asked = "with its defaults: unbiased; with discount=0.9: what `turnwise explain --bias` measures."
    assert asked in other
    assert asked in " ".join(explain("household-medium").split())
    assert f"{declared}: up to the factor 1/length." in said(reduce={"name": "fixed_length", "length": 9})
    assert "with its defaults" not in said(credit={"name": "capo", "success": 2.0}, judge="gold")


def test_what_reaches_the_engine_of_adapters_and_how_many_learn_is_said() -> None:
    text = explain("shop-quick", **{"model.lora.rank": 4, "scale.learners": 2})
    assert "adapters are merged on their way to the engine" in text
    assert "2 learners take every step together" in text
    assert "merged" not in explain("shop-quick")
