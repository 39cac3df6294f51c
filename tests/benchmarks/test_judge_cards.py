"""What an audit found wanting is paid by no shipped recipe; the plans of campaigns can be read."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.trainers.recipe.load import load_recipe, recipe_names
from turnwise.trainers.recipe.schema import Recipe

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CARDS: dict[str, Any] = json.loads((BENCHMARKS / "judge-cards.json").read_text("utf-8"))


def unearned(recipe: Recipe) -> list[str]:
    """Suites whose reward pays what is no solution or was not audited, and judges that nothing is required of."""
    cards = {suite: CARDS["envs"].get(suite) for suite in recipe.suites}
    worlds = [suite for suite, card in cards.items() if card is None or card["failures"]]
    return worlds + [
        part.name for part in recipe.judge if part.component("judge").gives and part.require is None
    ]


@pytest.mark.parametrize("name", recipe_names())
def test_no_shipped_recipe_pays_what_failed_its_audit(name: str) -> None:
    assert unearned(load_recipe(name, {})) == []


def test_a_world_without_a_card_and_a_judge_of_whom_nothing_is_required_would_be_found() -> None:
    paid = {"judge": "gold", "reward": {"name": "from_signal", "signal": "principle"}}
    assert unearned(load_recipe("shop-quick", paid)) == ["gold"]
    required = {
        "judge": {"name": "scripted", "require": {"error": 0.1}},
        "reward": {"name": "from_signal", "signal": "verdict"},
    }
    assert unearned(load_recipe("shop-quick", required)) == []
    assert unearned(load_recipe("shop-quick", {"suite": "judging/verdict"})) == ["judging/verdict"]


def test_fourteen_environments_have_a_card_and_each_accepts_its_own_solutions() -> None:
    assert len(CARDS["envs"]) >= 10
    assert {card["figures"]["solution"]["accepted"][0] for card in CARDS["envs"].values()} == {1.0}


@pytest.mark.parametrize("stem", ["farmable", "unverified", "calibrated", "trusted"])
def test_every_cell_of_a_plan_is_a_recipe(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "learning"))
    plans = importlib.import_module("campaigning.plan")
    plan = plans.read_plan(BENCHMARKS / "learning" / "plans" / f"{stem}.yaml")
    for setting in plan.settings:
        for method in plan.methods_of(setting):
            asked = plans.asked_of(plan, plans.Cell(setting, method, 0))
            assert load_recipe(asked["recipe"], asked["changes"]).updates > 0
