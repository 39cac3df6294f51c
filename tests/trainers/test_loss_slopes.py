"""Slopes of losses that were worked out by hand; their formulas are in tests/reference."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise.registry import get_component
from turnwise.trainers.core import ScheduleMoment
from turnwise.trainers.kit.toy_batches import token_batch, whole_batch
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.recipe.numbers import number_at


def slopes(value: Tensor, batch: Any) -> Tensor:
    (found,) = torch.autograd.grad(value.sum(), [batch.logp_RT])
    return found


def test_swapped_bounds_of_clip_are_noticed() -> None:
    """Clip-higher: what is allowed to rise by 28 % may fall by 20 % only."""
    batch = token_batch([[math.log(1.25), math.log(0.75)]], [[1.0, -1.0]], old_logp=[[0.0, 0.0]])
    clip = get_component("loss", "clip")
    found = slopes(clip.build({"low": 0.2, "high": 0.28})(batch).loss_RT, batch)
    assert found.tolist() == [[pytest.approx(-1.25), 0.0]]
    found = slopes(clip.build({"low": 0.28, "high": 0.2})(batch).loss_RT, batch)
    assert found.tolist() == [[0.0, pytest.approx(0.75)]]


def test_disco_weighs_hard_failures_more() -> None:
    """The slope in a failure's score is softmax(s/τ) of the group's failures: the worked weights of the formula book."""
    batch = whole_batch([[-0.5], [-0.7], [-0.6], [-0.9], [-1.2]], success=[1, 1, 0, 0, 0])
    for tau, wanted in ((10.0, [0.3434, 0.3332, 0.3234]), (1.0, [0.4368, 0.3236, 0.2397])):
        found = get_component("loss", "disco").build({"temperature": tau})(batch).loss
        assert slopes(found, batch)[:, 0].tolist() == pytest.approx([-0.5, -0.5, *wanted], abs=1e-4)


FAR = [4.4, 4.5, 6.0, 12.0, 30.0]


@pytest.mark.parametrize("name", ["kl", "kdrl"])
@pytest.mark.parametrize("gap", [sign * x for x in FAR for sign in (1, -1)])
def test_a_token_that_strayed_far_is_drawn_back(name: str, gap: float) -> None:
    """Where the gap is large the slope is capped and not dropped: √20 of ½x²; of k3 what it is where k3 is 10, and nearly 1."""
    batch = token_batch([[-31.0]], reference_logp=[[-31.0 - gap]])
    batch = dataclasses.replace(
        batch, signals={"token_teacher_logp": torch.full_like(batch.logp_RT, -31.0 - gap)}
    )
    loss = get_component("loss", name)
    for estimator in ("k1", "k2") if name == "kl" else ("k2",):
        found = slopes(loss.build({"estimator": estimator})(batch).loss_RT, batch).item()
        assert found == pytest.approx(math.copysign(min(abs(gap), math.sqrt(20)), gap))
    found = slopes(loss.build({"estimator": "k3"})(batch).loss_RT, batch).item()
    assert found == pytest.approx(1 - math.exp(-gap) if gap > 0 else -12.610869, rel=1e-6)


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_estimates_have_no_jump_where_they_become_straight(estimator: str) -> None:
    kl = get_component("loss", "kl").build({"estimator": estimator})
    for at in (-math.sqrt(20), math.sqrt(20), -2.610868638149876):
        near = [
            kl(token_batch([[-31.0]], reference_logp=[[-31.0 - at - step]])).loss_RT.item()
            for step in (-1e-7, 1e-7)
        ]
        assert near[0] == pytest.approx(near[1], abs=1e-5)


def test_papo_at_its_weight_is_that_of_the_paper() -> None:
    """γ = 0.02 and η = 0.05 of the formula book's example, without the entropy of the blind policy, which is left out."""
    batch = token_batch([[-0.5]])
    blind = {"token_teacher_logp": torch.full_like(batch.logp_RT, -1.5)}
    loss = get_component("loss", "papo").build({})(dataclasses.replace(batch, signals=blind)).loss_RT.item()
    assert 0.02 * loss == pytest.approx(-0.02 * 0.367879 + 0.05 * 0.5, abs=1e-6)


def test_chord_weighs_imitation_and_the_policy_loss_as_shares_of_one() -> None:
    """L = (1 − μ)·L_GRPO + μ·L_SFT in every update of the plan that compares it; 0.1891 in the formula book's example."""
    plan = Path(__file__).parents[2] / "benchmarks" / "learning" / "plans" / "demonstrations.yaml"
    changes = yaml.safe_load(plan.read_text())["methods"]["chord"]
    recipe = load_recipe("shop-quick", changes)
    keys = ("loss.clip.weight", "source.demonstrations.weight")
    for update in range(recipe.updates):
        own, shown = (
            recipe.schedule[key].build("schedule")(
                ScheduleMoment(update, recipe.updates, number_at(recipe, key), number_at(recipe, key))
            )
            for key in keys
        )
        assert own + shown == pytest.approx(1.0)
        assert 0.05 <= shown <= 0.9
    batch = token_batch([[math.log(0.5), math.log(0.9)]], [[1, 1]])
    imitation = get_component("loss", "chord").build({})(batch).loss_RT.mean().item()
    assert 0.9 * 0.2 + 0.1 * imitation == pytest.approx(0.1891, abs=1e-4)
