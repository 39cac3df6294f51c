"""Recipes that use the parts which weigh what was played by length, scores, tags, prompts, teachers and nuclei are read."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.errors import RecipeError
from turnwise.trainers.recipe.load import check_recipe

BARE: dict[str, Any] = {"suite": "household/easy", "model": {"scratch": {}}}
TEACHER: dict[str, Any] = {"name": "told"}


@pytest.mark.parametrize(
    "parts",
    [
        {"credit": "gated_length"},
        {"credit": {"name": "gated_length", "by": None, "share": 0.5}},
        {"credit": {"name": "prof", "keep": 4, "cost": 0.1}, "judge": "principles"},
        {"credit": "rlvmr"},
        {"credit": {"name": "branch_grpo", "fuse": "logp", "skip": 1, "skip_from": 2}, "rollout": {"strategy": "tree"},
         "schedule": {"credit.skip_from": {"name": "steps", "at": [3], "values": [3]}}},
        {"credit": "grpo", "shape": [{"name": "pro_grpo", "against": "prompt_confidence"}]},
        {
            "credit": "canon",
            "schedule": {"credit.inter": {"name": "cosine", "to": 0.0, "over": 20, "restarts": True}},
        },
        {"credit": "grpo", "loss": ["clip", {"name": "siren", "weight": 0.005, "mass": 0.8}]},
    ],
    ids=lambda parts: next(iter(str(one) for one in parts.values()))[:40],
)  # fmt: skip
def test_a_recipe_of_these_parts_is_read(parts: dict[str, Any]) -> None:
    check_recipe({**BARE, **parts})


def test_a_shape_of_a_teacher_asks_for_one() -> None:
    with pytest.raises(RecipeError, match="token_teacher_logp"):
        check_recipe({**BARE, "credit": "grpo", "shape": ["kdrl"]})
    recipe = check_recipe(
        {**BARE, "credit": "grpo", "shape": [{"name": "kdrl", "where": "failed"}], "teacher": TEACHER}
    )
    assert "token_teacher_logp" in recipe.needs
