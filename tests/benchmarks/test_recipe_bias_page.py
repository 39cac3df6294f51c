"""The page of recipes' bias says what was measured, of every credit rule, shape, filter and strategy that there is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from loss_bias import LOSS_FIGURES, SHIPPED_FIGURES, loss_bias, shipped_bias
from recipe_bias import FIGURES, PAGE, Combination, combinations, measured, page, read

from turnwise.registry import components
from turnwise.trainers.recipe.load import load_recipe, recipe_names
from turnwise.trainers.recipe.phases import phases_of

ROWS = read(ROOT / FIGURES)


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text("utf-8") == page(ROWS), "run `python benchmarks/recipe_bias.py --page`"


def test_every_combination_has_its_figure() -> None:
    assert {one for one, _ in ROWS} == {*combinations()}, "run `python benchmarks/recipe_bias.py`"


@pytest.mark.parametrize(
    "one",
    [
        Combination("return_to_go", "", "informative", "chain"),
        Combination("grpo", "", "informative", "chain"),
        Combination("rloo", "", "any", "tree"),
    ],
)
def test_figures_are_what_is_measured_now(one: Combination) -> None:
    kept, found = dict(ROWS)[one], measured(one)
    assert found._replace(degrees=None) == kept._replace(degrees=None)
    assert found.degrees == (None if kept.degrees is None else pytest.approx(kept.degrees, abs=0.01))


def kept(file: Path, **which: str) -> dict[str, Any]:
    """The figures of one row, by process."""
    (row,) = (row for row in json.loads((ROOT / file).read_text("utf-8")) if which.items() <= row.items())
    return row["processes"]


def test_every_loss_and_every_recipe_that_comes_along_has_its_figures() -> None:
    losses = json.loads((ROOT / LOSS_FIGURES).read_text("utf-8"))
    assert [row["loss"] for row in losses] == [entry.name for entry in components("loss")]
    assert all(row["slope"] == entry.slope for row, entry in zip(losses, components("loss"), strict=True))
    shipped = json.loads((ROOT / SHIPPED_FIGURES).read_text("utf-8"))
    phases = [(name, phase.name) for name in recipe_names() for phase in phases_of(load_recipe(name))]
    assert [(row["recipe"], row["phase"]) for row in shipped] == phases, "`recipe_bias.py --losses-only`"


@pytest.mark.parametrize("loss", ["clip", "one_token", "entropy", "kl", "papo", "rover"])
def test_figures_of_losses_are_what_is_measured_now(loss: str) -> None:
    rows = kept(LOSS_FIGURES, loss=loss)
    for name, bias in loss_bias(loss).items():
        assert [*bias.not_measurable] == rows[name]["not_measurable"]
        assert rows[name]["degrees"] == (
            None if bias.degrees is None else pytest.approx(bias.degrees, abs=0.01)
        )


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "phase"), [("household-medium", "")])
def test_figures_of_recipes_that_come_along_are_what_is_measured_now(recipe: str, phase: str) -> None:
    rows = kept(SHIPPED_FIGURES, recipe=recipe, phase=phase)
    for name, bias in shipped_bias(recipe, phase).items():
        assert rows[name]["degrees"] == pytest.approx(bias.degrees, abs=0.01)
        assert rows[name]["instead"] == pytest.approx(bias.instead, abs=0.01)
