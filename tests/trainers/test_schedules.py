"""Numbers of a recipe change from update to update; what cannot change is refused, and what remembers goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.errors import RecipeError
from turnwise.trainers.core import PartState
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.recipe.numbers import number_at
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.schedules import Schedules

RECIPE: dict[str, Any] = {
    "suite": "shop/quick",
    "model": {"scratch": {}},
    "credit": {"name": "gae", "lam": 0.5},
    "loss": ["clip", {"name": "entropy", "weight": 0.02}],
    "guide": ["prefix"],
    "source": [{"name": "demonstrations", "weight": 0.5, "loss": [{"name": "nll", "weight": 2.0}]}],
    "rollout": {"episode_tokens": 100},
    "updates": 11,
}
SCHEDULE = {
    "credit.lam": {"name": "linear", "to": 1.0},
    "loss.entropy.weight": {"name": "linear", "to": 0.0, "over": 4},
    "loss.clip.high": {"name": "steps", "at": [5], "values": [0.4]},
    "guide.prefix.share": {"name": "linear", "to": 0.5},
    "source.demonstrations.weight": {"name": "cosine", "to": 0.1},
    "source.demonstrations.episodes": {"name": "linear", "to": 6.0},
    "optimizer.learning_rate": {"name": "towards", "metric": "kl_old", "target": 0.1, "gain": -1.0},
    "rollout.episode_tokens": {"name": "linear", "to": 300},
}


def test_each_number_goes_its_way_and_all_else_stays() -> None:
    recipe = load_recipe({**RECIPE, "schedule": SCHEDULE})
    schedules = Schedules(recipe)
    first = schedules.at(0)
    assert first.model_dump() == recipe.model_dump() | {
        "credit": first.credit.model_dump(), "loss": [x.model_dump() for x in first.loss],
        "guide": [x.model_dump() for x in first.guide], "source": [x.model_dump() for x in first.source],
    }  # fmt: skip
    assert {key: number_at(first, key) for key in SCHEDULE} == pytest.approx(
        {key: number_at(recipe, key) for key in SCHEDULE}
    )
    for update in range(1, 6):
        schedules.seen({"kl_old": 0.11, "seconds": 3.0, "vacuous": "why"})
        fifth = schedules.at(update)
    assert fifth.credit.options["lam"] == pytest.approx(0.75)
    assert [part.weight for part in fifth.loss] == [1.0, 0.0]
    assert fifth.loss[0].options["high"] == 0.4
    assert fifth.guide[0].options["share"] == pytest.approx(0.75)
    assert fifth.source[0].weight == pytest.approx(0.3)
    assert fifth.source[0].options["episodes"] == 11
    assert fifth.optimizer.learning_rate == pytest.approx(recipe.optimizer.learning_rate * 0.9**5)
    assert fifth.rollout.episode_tokens == 200
    assert schedules.values["schedule/credit.lam"] == pytest.approx(0.75)
    terms = build_parts(fifth).sources[0].objective.terms
    assert terms[0].weight == pytest.approx(0.6), "the source's weight times the loss's"


def test_a_run_that_goes_on_has_the_same_numbers() -> None:
    recipe = load_recipe({**RECIPE, "schedule": SCHEDULE})
    one, other = Schedules(recipe), Schedules(recipe)
    for update in range(3):
        one.at(update)
        one.seen({"kl_old": 0.1 + update, "seconds": float(update)})
    state = one.state()
    other.restore(PartState(json.loads(json.dumps({**state.numbers}))))
    assert one.at(3) == other.at(3)
    assert "seconds" not in json.dumps({**state.numbers})


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("rollout.groups", "'rollout.groups' is fixed when a run begins"),
        ("loss.clop.high", "The recipe has no 'loss.clop.high'"),
        ("loss.clip.hihg", "The recipe has no 'loss.clip.hihg'"),
        ("loss.clip", "which is no number to schedule"),
        ("filter.name", "which is no number to schedule"),
    ],
)
def test_what_can_have_no_schedule_is_refused(key: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said.replace(".", r"\.")):
        load_recipe({**RECIPE, "schedule": {key: "linear"}})


def test_an_unknown_schedule_names_the_nearest() -> None:
    with pytest.raises(RecipeError, match="Did you mean 'linear'"):
        load_recipe({**RECIPE, "schedule": {"loss.clip.high": "linaer"}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"teacher": {"name": "told", "top": 4}}, "teacher 'told' can have no effect"),
        ({"loss": ["clip", "distill"]}, "and there is no teacher"),
        ({"loss": ["clip", "distill"], "teacher": "told"}, r"teacher\.top is 0, and a loss asks"),
        ({"guide": ["prefix", "prefix"]}, "guide 'prefix' is named twice"),
        ({"guide": ["prefix"], "rollout": {"strategy": "tree"}, "credit": "tree"}, "plays whole episodes"),
        ({"guide": [{"name": "prefix", "loss": ["disco"]}]}, "'disco' is of whole minibatches"),
        ({"source": [{"name": "demonstrations", "correction": "tos"}]}, "Did you mean 'tis'"),
        ({"source": ["demonstration"]}, "Did you mean 'demonstrations'"),
        ({"source": ["stored"]}, "source 'stored' has no path"),
        ({"reward": "e_grpo"}, "The reward is called near_miss"),
    ],
)
def test_help_that_fits_nothing_is_refused(change: dict[str, Any], said: str) -> None:
    base = {key: value for key, value in RECIPE.items() if key not in ("guide", "source", "credit", "loss")}
    with pytest.raises(RecipeError, match=said):
        load_recipe({**base, **change})


def test_a_recipe_survives_being_written() -> None:
    recipe = load_recipe(
        {
            **RECIPE,
            "schedule": SCHEDULE,
            "teacher": {"name": "told", "top": 3},
            "loss": ["clip", {"name": "entropy", "weight": 0.02}, "distill"],
        }
    )
    import yaml

    assert load_recipe(yaml.safe_load(recipe.to_yaml())) == recipe
