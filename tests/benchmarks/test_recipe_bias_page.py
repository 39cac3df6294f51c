"""The page of recipes' bias says what was measured, of every credit rule, shape, filter and strategy that there is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from recipe_bias import FIGURES, PAGE, Combination, combinations, measured, page, read

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
