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
        ({"source": ["demonstrations", "demonstrations"]}, "source 'demonstrations' is named twice"),
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


@pytest.mark.parametrize(
    ("key", "schedule"),
    [
        ("optimizer.learning_rate", "linear"),
        ("optimizer.learning_rate", "cosine"),
        ("source.demonstrations.weight", "linear"),
        ("source.demonstrations.weight", {"name": "steps", "at": [2], "values": [0.0]}),
        ("source.demonstrations.loss.nll.weight", "linear"),
        ("loss.entropy.weight", "linear"),
    ],
)
def test_a_rate_or_a_weight_may_go_down_to_0(key: str, schedule: Any) -> None:
    recipe = load_recipe({**RECIPE, "schedule": {key: schedule}})
    schedules = Schedules(recipe)
    last = [schedules.at(update) for update in range(recipe.updates)][-1]
    assert number_at(last, key) == 0
    build_parts(last)


def test_a_weight_may_come_up_from_0_and_a_rate_may_not_begin_there() -> None:
    source = [{"name": "demonstrations", "weight": 0}]
    up = {"source.demonstrations.weight": {"name": "linear", "to": 1}}
    recipe = load_recipe({**RECIPE, "source": source, "schedule": up})
    assert Schedules(recipe).at(5).source[0].weight == pytest.approx(0.5)
    with pytest.raises(RecipeError, match="source 'demonstrations' has weight 0"):
        load_recipe({**RECIPE, "source": source})
    rate = {
        "optimizer": {"learning_rate": 0},
        "schedule": {"optimizer.learning_rate": {"name": "linear", "to": 1}},
    }
    with pytest.raises(RecipeError, match=r"learning_rate' cannot be 0"):
        load_recipe({**RECIPE, **rate})


@pytest.mark.parametrize(
    ("key", "schedule", "said"),
    [
        ("sampling.temperature", "linear", "sets sampling.temperature to 0 in update 11 of 11"),
        ("optimizer.minibatches", "linear", "sets optimizer.minibatches to 0 in update 6 of 11"),
        (
            "optimizer.minibatches",
            {"name": "linear", "to": 64},
            "to 20 in update 4 of 11, more than the 16 groups",
        ),
        ("optimizer.learning_rate", {"name": "linear", "to": -1}, r"to -0\.0999991 in update 2 of 11"),
        ("loss.clip.high", {"name": "steps", "at": [3, 2], "values": [1, 2]}, "are no stages"),
        ("rollout.episode_tokens", {"name": "steps", "at": [4], "values": [-1]}, "to -1 in update 5 of 11"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_when_the_recipe_is_read(
    key: str, schedule: Any, said: str
) -> None:
    with pytest.raises(RecipeError, match=said) as refused:
        load_recipe({**RECIPE, "optimizer": {"minibatches": 1}, "schedule": {key: schedule}})
    assert refused.value.remedy


def test_an_option_that_its_part_refuses_is_refused_when_the_recipe_is_read() -> None:
    source = [{"name": "relift", "batch": 4}]
    with pytest.raises(RecipeError, match=r"sets source\.relift\.batch to 0 in update 10 of 11.*batch=0"):
        load_recipe({**RECIPE, "source": source, "schedule": {"source.relift.batch": "linear"}})


def test_what_a_metric_leads_to_is_refused_in_words_when_it_comes() -> None:
    grows = {"name": "towards", "metric": "kl_old", "target": 0.1, "gain": -9.0}
    schedules = Schedules(load_recipe({**RECIPE, "schedule": {"sampling.temperature": grows}}))
    schedules.at(0)
    schedules.seen({"kl_old": 9.0})
    with pytest.raises(
        RecipeError, match=r"sets sampling\.temperature to -0\.8 in update 2 of 11, which it cannot be"
    ):
        schedules.at(1)


def test_a_whole_number_is_whole_by_its_kind_and_not_by_how_it_is_written() -> None:
    down = {"credit.lam": {"name": "linear", "to": 0.5}}
    recipe = load_recipe({**RECIPE, "credit": {"name": "gae", "lam": 1}, "schedule": down})
    assert Schedules(recipe).at(5).credit.options["lam"] == pytest.approx(0.75)


def test_losses_of_a_source_have_schedules_too() -> None:
    source = [{"name": "demonstrations", "loss": [{"name": "luffy"}]}]
    down = {"source.demonstrations.loss.luffy.gamma": {"name": "linear", "to": 0.05}}
    recipe = load_recipe({**RECIPE, "source": source, "schedule": down})
    last = Schedules(recipe).at(10).source[0].loss
    assert last is not None
    assert last[0].options["gamma"] == pytest.approx(0.05)
