"""What `turnwise explain --bias` says of whole recipes: where a rule is unbiased and the recipe around it is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from turnwise.cli.recipe_bias import bias_file, bias_of, composition
from turnwise.errors import RecipeError
from turnwise.trainers.core import TokenCredit
from turnwise.trainers.lab.recipe_bias import ProcessBias, recipe_bias, shown
from turnwise.trainers.recipe.load import check_recipe

EXACT = 1e-6
SIZE = 4


def found(**keys: Any) -> dict[str, ProcessBias]:
    recipe = {"suite": "calc/easy", "model": {"scratch": {}}, **keys}
    return recipe_bias(composition(check_recipe(recipe)), SIZE)


def degrees(**keys: Any) -> dict[str, float]:
    return {name: bias.degrees for name, bias in found(**keys).items() if bias.degrees is not None}


@pytest.mark.parametrize("keys", [{}, {"credit": "rloo"}, {"credit": "dr_grpo"}, {"credit": "gae"}], ids=str)
def test_the_default_recipe_is_exact_with_its_filter_and_its_denominator(keys: dict[str, Any]) -> None:
    for name, bias in found(**keys).items():
        assert bias.degrees is not None, name
        assert bias.degrees < EXACT, (name, bias)
        assert bias.scale == pytest.approx(1), (name, bias)


def test_dropping_groups_of_equal_returns_was_biased() -> None:
    """The filter that the trainer used to have: returns are compared, where the rule looks at single turns."""
    parts = composition(check_recipe({"suite": "calc/easy", "model": {"scratch": {}}}))

    def by_returns(batch: Any, credit: Any) -> torch.Tensor:
        R_B, G = batch.return_B, int(batch.group_B.max()) + 1
        low, high = (
            R_B.new_zeros(G).scatter_reduce(0, batch.group_B, R_B, f, include_self=False)
            for f in ("amin", "amax")
        )
        return (high - low > 1e-6)[batch.group_B].float()

    assert recipe_bias(parts._replace(filter=by_returns), SIZE)["puzzle"].degrees > 3  # pyright: ignore


def test_grpo_is_exact_on_each_task_of_two_outcomes_and_not_on_two_tasks() -> None:
    given = degrees(credit="grpo")
    assert given["puzzle"] < EXACT
    assert given["two tasks"] > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [
        {"reduce": "token_mean"},
        {"credit": {"name": "return_to_go", "discount": 0.9}},
        {"credit": "rloo", "shape": ["whiten"], "filter": "any"},
    ],
    ids=str,
)
def test_options_denominators_and_shapes_are_seen(keys: dict[str, Any]) -> None:
    assert max(degrees(**keys).values()) > 0.3


def test_learned_signals_are_also_shown_wrong_and_others_are_not_measurable() -> None:
    gae = found(credit={"name": "gae", "lam": 0.5})
    assert all(
        bias.degrees < EXACT < 0.1 < bias.perturbed_degrees for bias in (gae["stopping"], gae["two tasks"])
    )  # pyright: ignore
    assert gae["puzzle"].exact_signals == ()
    assert all("progress" in bias.not_measurable for bias in found(credit="spa").values())
    tree = found(credit="tree", rollout={"strategy": "tree"})
    assert all("strategy tree" in bias.not_measurable for bias in tree.values())
    assert found(loss=["clip", {"name": "entropy", "weight": 0.01}])["chain"].left_out == ("loss entropy",)


def test_rules_for_episodes_drawn_apart_are_refused_where_episodes_share_turns() -> None:
    for rule in ("rloo", "return_to_go", "siblings", "dr_grpo"):
        with pytest.raises(RecipeError, match="share turns"):
            found(credit=rule, rollout={"strategy": "tree"})


def test_what_was_computed_is_kept_by_parts_and_options(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keys: dict[str, Any] = {"suite": "calc/easy", "model": {"scratch": {}}, "rollout": {"group_size": 2}}
    recipe = check_recipe(keys)
    assert bias_of(recipe, compute=False) is None
    first = bias_of(recipe, compute=True)
    assert bias_of(check_recipe({**keys, "seed": 9}), compute=False) == first
    assert bias_of(check_recipe({**keys, "credit": "rloo"}), compute=False) is None
    bias_file(recipe).write_text('{"damaged": 1}')
    assert bias_of(recipe, compute=False) is None
    assert bias_of(recipe, compute=True) == first
    monkeypatch.setattr("turnwise.cli.recipe_bias.code_state", lambda: "another formula")
    assert bias_of(recipe, compute=False) is None


def test_a_composition_gives_tokens_what_it_gives_turns() -> None:
    from turnwise.trainers.check.credit import turns

    batch = turns(3)
    assert isinstance(
        composition(check_recipe({"suite": "calc/easy", "model": {"scratch": {}}}))(batch), TokenCredit
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "part", "unbiased"),
    [
        ({"guide": [{"name": "prefix", "where": "all"}]}, "guide/prefix", True),
        ({"guide": ["hint"], "correction": "none"}, "guide/hint", False),
        ({"source": [{"name": "demonstrations", "weight": 0.5}]}, "source/demonstrations", True),
        (
            {
                "loss": ["clip", {"name": "distill", "weight": 0.1}],
                "teacher": {"name": "model", "path": "/m", "top": 8},
            },
            "loss/distill",
            True,
        ),
    ],
    ids=str,
)
def test_help_is_shown_beside_what_it_declares_and_is_kept(
    keys: dict[str, Any], part: str, unbiased: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = check_recipe(
        {"suite": "calc/easy", "model": {"scratch": {}}, "rollout": {"group_size": SIZE}, **keys}
    )
    computed = bias_of(recipe, compute=True)
    assert computed is not None
    angles = [bias.help[part] for name, bias in computed.items() if name != "two tasks"]
    assert max(to_return for to_return, _ in angles) > 3
    assert (max(declared for _, declared in angles) < EXACT) is unbiased
    assert all(bias.degrees is not None and bias.degrees < EXACT for bias in computed.values())
    assert bias_of(recipe, compute=False) == computed
    text = "\n".join(shown(computed))
    assert f"with {part}" in text
