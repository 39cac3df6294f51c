"""A correction may not weigh apart what a loss weighs as one, nor stand where no loss looks at advantages."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from turnwise.errors import RecipeError
from turnwise.registry import components
from turnwise.trainers.recipe.algorithms import ALGORITHMS
from turnwise.trainers.recipe.explain import explain
from turnwise.trainers.recipe.levels import ignores_advantages, level_of_correction, level_of_loss
from turnwise.trainers.recipe.load import check_recipe, load_recipe
from turnwise.trainers.recipe.part import LossPart, Part
from turnwise.trainers.recipe.phases import phases_of


def recipe(**keys: Any) -> Any:
    return check_recipe({"suite": "calc/easy", "model": {"scratch": {}}, **keys})


@pytest.mark.parametrize("level", ["token", "turn", "trajectory"])
def test_a_corrections_level_is_found_by_trying_it(level: str) -> None:
    for name in ("tis", "mis"):
        part = Part.model_validate({"name": name, "level": level})
        assert level_of_correction(part.build("correction")) == level
    assert level_of_correction(Part(name="none").build("correction")) is None


@pytest.mark.parametrize(
    ("loss", "level"),
    [
        ({"name": "clip"}, "token"),
        ({"name": "cispo"}, "token"),
        ({"name": "gspo"}, "trajectory"),
        ({"name": "gspo", "level": "turn"}, "turn"),
        ({"name": "gmpo"}, "trajectory"),
    ],
    ids=str,
)
def test_a_losss_level_is_found_by_trying_it(loss: dict[str, Any], level: str) -> None:
    part = LossPart.model_validate(loss)
    assert level_of_loss(part.make, whole=part.whole) == level


def test_losses_of_preferences_ignore_advantages_and_policy_gradients_do_not() -> None:
    for entry in components("loss"):
        part = LossPart(name=entry.name)
        if entry.slope in ("-A", "-c·A"):
            assert not ignores_advantages(part.make, whole=part.whole), entry.name
    assert all(ignores_advantages(LossPart(name=name).make, whole=True) for name in ("dpo", "ipo", "kto"))


@pytest.mark.parametrize("level", ["token", "turn"])
def test_a_finer_correction_than_the_losss_ratio_is_refused(level: str) -> None:
    with pytest.raises(RecipeError, match="one by one") as refused:
        recipe(loss=["gspo"], correction={"name": "tis", "level": level})
    assert "level: trajectory" in str(refused.value)
    recipe(loss=["gspo"], correction={"name": "tis", "level": "trajectory"})
    recipe(loss=["gspo"], correction="none")
    several = {"minibatches": 2}
    recipe(
        loss=[{"name": "gspo", "level": "turn"}],
        correction={"name": "mis", "level": "turn"},
        optimizer=several,
    )


@pytest.mark.parametrize("correction", ["mis", "tis", {"name": "tis", "level": "trajectory"}], ids=str)
def test_a_correction_is_refused_where_no_loss_looks_at_advantages(correction: Any) -> None:
    with pytest.raises(RecipeError, match="does not look at them"):
        recipe(loss=["dpo"], correction=correction)
    recipe(loss=["dpo"], correction="none")
    recipe(loss=["clip", {"name": "dpo", "weight": 0.1}], correction=correction)
    helped = {"loss": ["kl"], "guide": [{"name": "hint", "loss": ["clip"]}]}
    recipe(**helped, correction=correction)  # it weighs the advantages of tokens that help had a hand in
    own = {**helped, "guide": [{"name": "hint", "loss": ["clip"], "correction": "none"}]}
    with pytest.raises(RecipeError, match="does not look at them"):
        recipe(**own, correction=correction)


def test_what_nobody_asked_for_is_dropped_where_no_loss_looks_at_advantages() -> None:
    assert recipe(loss=["dpo"]).correction.name == "none"
    assert recipe(loss=["clip"]).correction.name == "tis"
    assert recipe(loss=["clip", "dpo"]).correction.name == "tis"
    again = yaml.safe_load(recipe(loss=["dpo"]).to_yaml())
    assert check_recipe(again).correction.name == "none"


def test_each_phase_has_the_correction_that_its_losses_can_see() -> None:
    tulu = load_recipe("tulu3")
    for one in (tulu, check_recipe(yaml.safe_load(tulu.to_yaml()))):
        assert [phase.recipe.correction.name for phase in phases_of(one)] == ["none", "tis"]
    first, last = explain("tulu3").split("Phase 2 of 2")
    assert "`tis`" not in first
    assert "correction: tis" not in first
    assert "the correction `tis`" in last
    with pytest.raises(RecipeError, match="phase 'dpo': correction 'tis' weighs advantages"):
        load_recipe("tulu3", {"correction": "tis"})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_by_name_has_a_correction_that_fits(name: str) -> None:
    recipe(algorithm=name)
