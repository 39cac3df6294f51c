"""Samplers and refill: the expected update is that of a fixed number of tasks, and a resumed run is the same run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from safetensors.torch import load_file

from turnwise.agents.evaluation.statistics import Interval
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RecipeError
from turnwise.registry import components
from turnwise.tasks.core import Split, derive_rng
from turnwise.trainers.check.sampler import advanced, outcomes
from turnwise.trainers.core import PartState
from turnwise.trainers.recipe.explain import explain
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.suites import weighted_mean
from turnwise.trainers.sampler.band import Band
from turnwise.trainers.sampler.core import SamplerSetup, example_setup
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.sampler.pool import TaskPool
from turnwise.trainers.sampler.refill import informative_share, refill_weights, size_weights
from turnwise.trainers.sampler.uniform import Uniform
from turnwise.trainers.strategy.runner import plan_group, plan_groups

# --- refill: by enumeration of a small process ---------------------------------------------------------
# A task is of one of three sorts; its group adds this to the update, and is informative or not. The third sort is not
# informative by its rewards and adds something all the same.

SORTS = (
    (Fraction(1, 5), Fraction(3), True),
    (Fraction(3, 10), Fraction(-7, 2), True),
    (Fraction(1, 2), Fraction(1, 4), False),
)
MEAN = sum(p * adds for p, adds, _ in SORTS)


def expected(
    rounds: int, enough: int, most: int, estimate: Callable[[list[list[int]]], Fraction]
) -> Fraction:
    """The expected update over every sequence of tasks that the stopping rule lets happen."""

    def go_on(played: list[list[int]], chance: Fraction) -> Fraction:
        so_far = [sort for one in played for sort in one]
        if played and (len(so_far) >= most or sum(SORTS[sort][2] for sort in so_far) >= enough):
            return chance * estimate(played)
        total = Fraction(0)
        for drawn in itertools.product(range(3), repeat=min(rounds, most - len(so_far))):
            likely = chance
            for sort in drawn:
                likely *= SORTS[sort][0]
            total += go_on([*played, list(drawn)], likely)
        return total

    return go_on([], Fraction(1))


@pytest.mark.parametrize(
    ("rounds", "enough", "most"), [(1, 2, 6), (1, 3, 5), (2, 2, 6), (2, 3, 5), (3, 2, 6), (3, 4, 7)]
)
def test_refill_has_the_expected_update_of_fixed_tasks(rounds: int, enough: int, most: int) -> None:
    def weighed(played: list[list[int]]) -> Fraction:
        flags = [SORTS[sort][2] for one in played for sort in one]
        share = informative_share([len(one) for one in played], sum(flags), enough)
        adds = [SORTS[sort][1] for one in played for sort in one]
        of = {
            kind: [x for x, flag in zip(adds, flags, strict=True) if flag is kind] for kind in (True, False)
        }
        means = {
            kind: sum(found, Fraction(0)) / len(found) if found else Fraction(0) for kind, found in of.items()
        }
        return share * means[True] + (1 - share) * means[False]

    def plain(played: list[list[int]]) -> Fraction:
        adds = [SORTS[sort][1] for one in played for sort in one]
        return sum(adds, Fraction(0)) / len(adds)

    assert expected(rounds, enough, most, weighed) == MEAN
    assert expected(rounds, enough, most, plain) != MEAN, "the weights are needed"


@pytest.mark.parametrize("rounds", [[1] * 9, [1] * 4])
@pytest.mark.parametrize("enough", [2, 4])
def test_one_task_at_a_time_is_inverse_sampling(rounds: list[int], enough: int) -> None:
    played = len(rounds)
    assert informative_share(rounds, enough, enough) == Fraction(enough - 1, played - 1)
    assert informative_share(rounds, enough - 1, enough) == Fraction(enough - 1, played), "the cap"
    weights = refill_weights([[True]] * (enough - 1) + [[False]] * (played - enough) + [[True]], enough)
    each = (enough - 1) / (enough * (played - 1))
    assert weights[0] / played == pytest.approx(each, rel=1e-12)
    assert weights[-1] / played == pytest.approx(each, rel=1e-12)


def test_weights_say_how_much_was_played() -> None:
    flags = [[True, False, False], [False, True, True]]
    assert sum(refill_weights(flags, 3)) == pytest.approx(6, rel=1e-12), "constants have their mean"
    assert refill_weights([[False] * 3, [False] * 3], 2) == [1.0] * 6
    assert refill_weights([], 2) == []
    assert refill_weights([[], [True, False], []], 2) == [1.0, 1.0], (
        "a round that cannot be used was not played"
    )
    assert size_weights([3, 3, 3], [1.0] * 3) == [1.0] * 3, "bit for bit"


# --- entries --------------------------------------------------------------------------------------------


def test_uniform_plays_what_was_played_before_there_were_samplers() -> None:
    setup = SamplerSetup(Mixture({"sort/4": 1}, 7), 7, 3, 2, 3)
    for update in (0, 5):
        asked = Uniform(setup).plan(update, 0, 3)
        assert [one.task for one in asked] == [
            *suite_tasks(get_suite("sort/4"), Split.TRAIN, 3, start=3 * update)
        ]
        assert {(one.episodes, one.weight, one.visits) for one in asked} == {(2, 1.0, 0)}
    plan = [plan_group(one.task, 2, 5, g) for g, one in enumerate(Uniform(setup).plan(5, 0, 3))]
    assert plan == plan_groups("sort/4", 3, 2, 5)


def test_a_mixture_draws_suites_by_weight() -> None:
    mixture = Mixture({"sort/4": 1, "shop/quick": 3}, 0)
    names = [mixture.suite_of(index).name for index in range(1000)]
    assert 700 < names.count("shop/quick") < 800
    assert names != [Mixture({"sort/4": 1, "shop/quick": 3}, 1).suite_of(index).name for index in range(1000)]


def test_the_band_keeps_what_is_inside() -> None:
    sampler = Band(example_setup(group_size=8), low=0.25, high=0.75)
    asked = sampler.plan(0, 0, 8)
    seen = outcomes(0, asked)
    sampler.seen(0, seen)
    inside = {one.request.index for one in seen if 0.25 <= one.successes / 8 <= 0.75}
    again = sampler.plan(1, 0, 8)
    assert 0 < len(inside) < 8
    assert {one.index for one in again if one.visits} == inside
    assert {one.index for one in again} - inside <= set(range(8, 16))


def test_groups_may_be_unequal() -> None:
    band = advanced(Band(example_setup(group_size=8), first=3))
    assert {one.episodes for one in band.plan(4, 0, 8)} == {3, 8} == band.sizes
    pool = advanced(TaskPool(example_setup(), size=12, hard=9))
    assert {one.episodes for one in pool.plan(4, 0, 8)} == {4, 9} == pool.sizes


def test_a_pool_draws_each_task_as_often_as_any_other() -> None:
    sampler = TaskPool(example_setup(most=4), size=10)
    counts = [0] * 10
    for update in range(300):
        for one in sampler.plan(update, 0, 4):
            counts[one.index] += 1
    assert min(counts) > 80
    assert max(counts) < 160


@pytest.mark.parametrize("entry", components("sampler"), ids=lambda entry: entry.name)
def test_a_checkpoint_without_memory_is_a_beginning(entry: Any) -> None:
    sampler = advanced(entry.build({})(example_setup()))
    sampler.restore(PartState())
    assert sampler.plan(9, 0, 8) == entry.build({})(example_setup()).plan(9, 0, 8)


@pytest.mark.parametrize("entry", components("sampler"), ids=lambda entry: entry.name)
def test_tasks_are_as_likely_as_is_declared(entry: Any) -> None:
    """After some updates: by suite beside the mixture's shares, and by how likely a task is to be solved, weights included."""
    sampler: Any
    sampler, weight, of_suite, ease = Uniform(example_setup()), 0.0, 0.0, 0.0
    for seed in range(12):
        sampler = entry.build({})(example_setup(seed=seed))
        if sampler.returns:
            sampler = entry.build({"size": 24} if "size" in entry.options else {})(example_setup(seed=seed))
        for request in advanced(sampler, 4).plan(4, 0, 8):
            weight += request.weight
            of_suite += request.weight * (request.suite == "sort/4")
            ease += request.weight * derive_rng("outcome", request.index).random()
    fair = abs(of_suite / weight - 0.25) < 0.13 and abs(ease / weight - 0.5) < 0.09
    assert fair or not sampler.unbiased, (of_suite / weight, ease / weight)
    assert sampler.over
    assert sampler.over in explain("shop-quick", **{"rollout.sampler": entry.name})


def test_the_mean_of_suites_is_weighted() -> None:
    def found(success: float, half: float) -> Any:
        return SimpleNamespace(
            success=success, success_interval=Interval(success - half, success + half), mean_score=success
        )

    mean = weighted_mean([found(0.2, 0.1), found(0.6, 0.2)], [0.25, 0.75])
    assert mean.success == pytest.approx(0.5)
    assert mean.success_interval.low == pytest.approx(0.5 - (0.025**2 + 0.15**2) ** 0.5)


# --- recipes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "cause", "remedy"),
    [
        ({"rollout.sampler": "pol"}, "no sampler 'pol'", "'pool'"),
        ({"rollout.sampler": {"name": "pool", "size": 3}}, "3 tasks", "Raise its size"),
        ({"rollout.sampler": {"name": "band", "low": 0.9}}, "no band", "low ≤ high"),
        ({"rollout.refill": {"informative": 4, "most": 4}}, "nothing to draw", "Raise it"),
        ({"rollout.refill": {"informative": 1}}, "informative", "2 or more"),
        ({"rollout.refill": {"informative": 4}, "filter": "any"}, "filter 'any'", "filter: informative"),
        ({"suite": "games/kuhn-self", "rollout.sampler": "band"}, "several agents", "rollout.opponents"),
        ({"suite": {"shop/quick": 1, "shop/quik": 1}}, "'shop/quik'", "'shop/quick'"),
        ({"suite": {"shop/quick": -1}}, "'suite.shop/quick'", "docs/recipes.md"),
        ({"suite": {}}, "'suite'", "docs/recipes.md"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], cause: str, remedy: str) -> None:
    with pytest.raises(RecipeError) as refused:
        load_recipe("shop-quick", changes)
    assert cause in str(refused.value)
    assert remedy in str(refused.value)


def test_explain_says_what_is_played() -> None:
    text = explain(
        "shop-quick", suite={"shop/quick": 1, "shop/easy": 3}, **{"rollout.refill": {"informative": 20}}
    )
    assert "on shop/quick (25 %), shop/easy (75 %), each of" in text
    assert "until 20 groups are informative or 64 tasks are played" in text
    assert "sampler: uniform()" in text
    assert "objective: the mean over the suites' training tasks" in text
    assert "waits for tasks to return" in explain("shop-quick", credit="dcpo")
    assert "waits for tasks to return" not in explain(
        "shop-quick", credit="dcpo", **{"rollout.sampler": "pool"}
    )


# --- training --------------------------------------------------------------------------------------------

SMALL = {
    "updates": 3, "warm_start": None, "evaluate": {"every": 3, "dev": 2, "test": 2}, "checkpoint": {"every": 1, "keep": 9}
}  # fmt: skip
FIGURES = (
    "update",
    "reward",
    "success",
    "tokens",
    "grad_norm",
    "informative",
    "rounds",
    "tasks_new",
    "tasks_returned",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rollout",
    [
        {
            "sampler": {"name": "band", "low": 0.0, "high": 1.0, "first": 3},
            "refill": {"informative": 3, "most": 5},
        },
        {"sampler": {"name": "pool", "size": 5, "hard": 6}},
    ],
    ids=["band", "pool"],
)
def test_a_run_that_is_killed_and_resumed_is_the_same_run(
    tmp_path: Path, letters: dict[str, Any], rollout: dict[str, Any]
) -> None:
    """What is killed after update 2 was at most what its second checkpoint holds."""
    recipe = {**letters, **SMALL, "rollout": {**letters["rollout"], "groups": 2, **rollout}, "credit": "dcpo"}

    def run(resume: bool = False) -> list[dict[str, Any]]:
        train(recipe, out=tmp_path / "run", resume=resume, preflight=False, log=lambda line: None)
        rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
        return [{name: row[name] for name in FIGURES} for row in rows]

    whole = run()
    last = tmp_path / "run/checkpoints/step-000003"
    weights = (last / "model/model.safetensors").read_bytes()
    assert sum(row["tasks_returned"] for row in whole) > 0, "tasks come back"
    last.rename(tmp_path / "kept")
    assert run(resume=True) == whole
    assert (last / "model/model.safetensors").read_bytes() == weights
    kept, again = (load_file(folder / "trainer.safetensors") for folder in (tmp_path / "kept", last))
    assert all((kept[name] == again[name]).all() for name in kept)
