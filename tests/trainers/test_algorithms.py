"""Algorithms by the names of the field: what they stand for, what wins beside them, and that they train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import turnwise
from turnwise.errors import RecipeError
from turnwise.trainers.recipe.algorithms import ALGORITHMS, departures
from turnwise.trainers.recipe.levels import ignores_advantages, level_of_loss
from turnwise.trainers.recipe.load import check_recipe, load_recipe

BARE = {"suite": "shop/quick", "model": {"path": "some/model"}}

# Read off the papers, apart from the table: advantage with its shapes, losses with their options, denominator, whether groups are
# filtered, optimizer steps per update as (epochs, minibatches), strategy. None: the paper leaves it to the run.
PAPERS: dict[str, tuple[str, dict[str, dict[str, Any]], str, bool, tuple[int | None, int | None], str]] = {
    # DeepSeekMath eq. 3: 1/|o| per answer, β = 0.04, one update per exploration.
    "grpo": ("grpo", {"clip": {}, "kl": {"weight": 0.04}}, "sequence_mean", False, (None, None), "chain"),
    # Dr. GRPO: neither std nor 1/|o|; no reference model.
    "dr_grpo": ("dr_grpo", {"clip": {}}, "fixed_length", False, (None, None), "chain"),
    # DAPO: ε 0.2 and 0.28, token mean, 0 < accuracy < 1, 16 gradient updates per rollout, no KL.
    "dapo": ("grpo", {"clip": {"low": 0.2, "high": 0.28}}, "token_mean", True, (None, 16), "chain"),
    # Tricks or Traps: group mean, batch std, token mean, no KL.
    "lite_ppo": ("lite_ppo", {"clip": {}}, "token_mean", False, (None, None), "chain"),
    # NGRPO: ε 0.16 and 0.24, KL 0, batches of 1024 in minibatches of 256; all-fail groups are the point.
    "ngrpo": ("ngrpo", {"clip": {"low": 0.16, "high": 0.24}}, "token_mean", False, (None, 4), "chain"),
    "gpg": ("dr_grpo gpg", {"clip": {}}, "token_mean", False, (1, 1), "chain"),
    "maxrl": ("maxrl", {"clip": {}}, "fixed_length", False, (1, 1), "chain"),
    "rloo": ("rloo", {"clip": {}}, "fixed_length", False, (1, 1), "chain"),
    # LOOP: ratio kept in [1/(1 + 0.1), 1 + 0.1], two epochs, 240 episodes in minibatches of 32.
    "loop": ("rloo loop", {"clip": {"low": 0.1 / 1.1, "high": 0.1}}, "token_mean", False, (2, 8), "chain"),
    # PPO: GAE with λ = 0.95, ε = 0.2, several epochs.
    "ppo": ("gae_token lam=0.95", {"clip": {}}, "token_mean", False, (4, None), "chain"),
    # turn-PPO: γ = 0.99 and λ = 0.9 over turns.
    "turn_ppo": ("gae discount=0.99 lam=0.9", {"clip": {}}, "token_mean", False, (4, None), "chain"),
    "bilevel_gae": ("gae_bilevel", {"clip": {}}, "token_mean", False, (4, None), "chain"),
    "reinforce++": ("reinforce_pp", {"clip": {}}, "token_mean", False, (None, None), "chain"),
    "reinforce++_baseline": ("dr_grpo whiten", {"clip": {}}, "token_mean", False, (None, None), "chain"),
    # GSPO: ε 3e-4 and 4e-4, 1/G Σ over trajectories, batches in four minibatches, no KL.
    "gspo": ("grpo", {"gspo": {"low": 3e-4, "high": 4e-4}}, "sequence_mean", False, (None, 4), "chain"),
    # DCPO: ε 0.16 and 0.2 in the bounds, mean of a response's tokens, every group (the smoothed advantages revive them), no KL.
    "dcpo": ("dcpo", {"dynamic_clip": {"low": 0.16, "high": 0.2}}, "sequence_mean", False, (None, None), "chain"),
    # LUSPO: as GSPO with ε 2e-3 and 2.5e-3.
    "luspo": ("grpo", {"luspo": {"low": 2e-3, "high": 2.5e-3}}, "sequence_mean", False, (None, 4), "chain"),
    # GMPO: tokens clipped to e^±0.4, geometric mean, batches of 1024 in minibatches of 128.
    "gmpo": ("grpo", {"gmpo": {"clip": 0.4}}, "sequence_mean", False, (None, 8), "chain"),
    # CISPO: no lower bound, token mean, dynamic sampling, 16 rounds of updates.
    "cispo": ("grpo", {"cispo": {"low": 1.0}}, "token_mean", True, (None, 16), "chain"),
    # SAPO: τ 1 and 1.05, mean per answer, four minibatches.
    "sapo": ("grpo", {"sapo": {"positive": 1.0, "negative": 1.05}}, "sequence_mean", False, (None, 4), "chain"),
    # DPPO: total variation, mean-centred advantages.
    "dppo": ("dr_grpo", {"dppo": {"divergence": "tv"}}, "token_mean", False, (None, 4), "chain"),
    # NFT: ω = 1 − q, sum over tokens over a constant, mixed groups, batches of 512 in minibatches of 32.
    "nft": ("dr_grpo", {"nft": {"by": "rate"}}, "fixed_length", True, (None, 16), "chain"),
    # DPO: β = 0.1.
    "online_dpo": ("grpo", {"dpo": {"beta": 0.1}}, "token_mean", True, (None, None), "chain"),
    # GiGPO: ω = 1, γ = 0.95, KL 0.01.
    "gigpo": (
        "gigpo weight=1.0 discount=0.95",
        {"clip": {}, "kl": {"weight": 0.01}},
        "token_mean",
        False,
        (None, None),
        "chain",
    ),
    "mt_grpo": ("mt_grpo", {"clip": {}}, "token_mean", False, (None, None), "chain"),
    # VinePPO: nine rollouts per state, two epochs, 512 episodes in minibatches of 64.
    "vineppo": ("vine", {"clip": {}}, "token_mean", False, (2, 8), "vine forks=9"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_is_what_its_paper_says(name: str) -> None:
    credit, losses, reduce, filtered, (epochs, minibatches), strategy = PAPERS[name]
    recipe = check_recipe({**BARE, "algorithm": name})
    assert " ".join(map(_written, (recipe.credit, *recipe.shape))) == credit
    assert [part.name for part in recipe.loss] == list(losses)
    for part, wanted in zip(recipe.loss, losses.values(), strict=True):
        given = {**part.component("loss").options, **part.options, "weight": part.weight}
        usual = {**part.component("loss").options, "weight": 1.0}
        if part.name == "clip" and recipe.steps > 1:
            usual["dual"] = None  # none of these papers bounds the loss of negative advantages
        assert given == pytest.approx({**usual, **wanted}), part.name
    assert recipe.reduce.name == reduce
    assert recipe.filter.name == ("informative" if filtered else "any")
    assert (recipe.optimizer.epochs, recipe.optimizer.minibatches) == (epochs or 1, minibatches or 1)
    assert _written(recipe.rollout.strategy) == strategy
    correction, *others = _untouched()
    ratio = level_of_loss(recipe.loss[0].make, whole=recipe.loss[0].whole)
    assert [recipe.judge, recipe.reward] == others
    if all(ignores_advantages(part.make, whole=part.whole) for part in recipe.loss):
        assert recipe.correction.name == "none"
    else:
        assert recipe.correction.name == correction.name
        assert recipe.correction.options.get("level", "token") == (ratio or "token")  # as coarse as the loss
    assert not list(departures(recipe))
    assert check_recipe(yaml.safe_load(recipe.to_yaml())) == recipe


def _written(part: Any) -> str:
    return " ".join([part.name, *(f"{key}={value}" for key, value in part.options.items())])


def _untouched() -> tuple[Any, ...]:
    plain = check_recipe(BARE)
    return plain.correction, plain.judge, plain.reward


def test_every_algorithm_has_a_reading() -> None:
    assert set(PAPERS) == set(ALGORITHMS)


def test_what_is_given_beside_it_wins_and_is_told() -> None:
    data = {
        **BARE,
        "algorithm": "dapo",
        "reduce": "fixed_length",
        "optimizer": {"minibatches": 4, "epochs": 3},
    }
    recipe = check_recipe(data)
    assert (recipe.reduce.name, recipe.optimizer.minibatches, recipe.optimizer.epochs) == (
        "fixed_length",
        4,
        3,
    )
    assert recipe.loss[0].options["high"] == 0.28
    assert list(departures(recipe)) == [
        "reduce is fixed_length, where dapo has token_mean",
        "optimizer.minibatches is 4, where dapo has 16",
    ]
    text = turnwise.explain(data)
    assert "Algorithm: dapo  [arXiv 2503.14476]" in text
    assert "This recipe departs from it: reduce is fixed_length, where dapo has token_mean." in text
    assert "Left out: The penalty on overlong answers, which is `reward: {name: soft_overlong" in text


def test_changes_are_made_to_what_the_algorithm_stands_for() -> None:
    recipe = load_recipe({**BARE, "algorithm": "grpo"}, {"credit.lam": 0.9, "algorithm": "ppo"})
    assert (recipe.credit.name, recipe.credit.options) == ("gae_token", {"lam": 0.9})
    recipe = load_recipe({**BARE, "algorithm": "gigpo"}, {"loss.kl.weight": 0.5})
    assert [part.weight for part in recipe.loss] == [1.0, 0.5]


def test_with_one_step_per_update_options_that_cannot_act_are_left_out() -> None:
    recipe = check_recipe({**BARE, "algorithm": "dapo", "optimizer": {"minibatches": 1}})
    assert [part.options for part in recipe.loss] == [{}]
    assert check_recipe({**BARE, "algorithm": "grpo"}).loss[0].options == {}


def test_a_recipe_without_one_says_nothing_of_it() -> None:
    recipe = check_recipe(BARE)
    assert "algorithm" not in recipe.to_yaml()
    assert "Algorithm" not in turnwise.explain(recipe)


@pytest.mark.parametrize(
    ("name", "cause", "remedy"),
    [
        ("dapoo", "There is no algorithm 'dapoo'", "Did you mean 'dapo'?"),
        ("reinforce_pp", "There is no algorithm", "Did you mean 'reinforce++'?"),
        ("PPO", "There is no algorithm 'PPO'", "Did you mean 'ppo'?"),
        (
            "ReMax",
            "'ReMax' is not offered: its baseline is the return of a greedy rollout",
            "list algorithms",
        ),
        (["grpo"], "There is no algorithm ['grpo']", "Did you mean 'grpo'?"),
        (3, "There is no algorithm 3", "Known: grpo, dr_grpo"),
    ],
)
def test_an_unknown_algorithm_is_refused(name: object, cause: str, remedy: str) -> None:
    with pytest.raises(RecipeError) as caught:
        check_recipe({**BARE, "algorithm": name})
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy


def test_the_line_of_an_unknown_algorithm_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("suite: shop/quick\nalgorithm: dapoo\nmodel: {path: some/model}\n")
    with pytest.raises(RecipeError, match=r"no algorithm 'dapoo' \(line 2\)"):
        load_recipe(file)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_trains(name: str, letters: dict[str, Any], tmp_path: Path) -> None:
    for key in ("loss", "warm_start"):
        del letters[key]
    letters["optimizer"] = {"learning_rate": 1e-3}
    letters |= {"rollout": {"groups": 16, "group_size": 2}, "evaluate": {"every": 2, "dev": 1, "test": 1}}
    result = turnwise.train(
        letters, out=tmp_path / "run", preflight=False, log=print, algorithm=name, updates=2
    )
    assert not result.interrupted
    assert result.learned == 2
