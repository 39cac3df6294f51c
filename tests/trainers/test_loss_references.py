"""Losses and corrections against their formulas, written here as loops over tokens, on random ragged batches."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise.registry import get_component
from turnwise.trainers.core import TokenBatch
from turnwise.trainers.kit.toy_batches import token_batch, whole_batch

BATCHES = range(12)


def number(x: Tensor) -> float:
    return x.item()


def numbers(rng: random.Random, *, whole: bool = False, **changes: Any) -> Any:
    """Rows of one to six tokens of three trajectories in two groups, some of them far from the old policy."""
    lengths = [rng.randint(1, 6) for _ in range(5)]
    trajectory = [0, 1, 1, 2, 3]

    def rows(low: float, high: float) -> list[list[float]]:
        return [[rng.uniform(low, high) for _ in range(n)] for n in lengths]

    old = rows(-4, -0.1)
    logp = [[x + rng.gauss(0, 0.6) for x in row] for row in old]
    given: dict[str, Any] = {
        "old_logp": old,
        "behaviour_logp": [[x + rng.gauss(0, 0.5) for x in row] for row in old],
        "reference_logp": [[x + rng.gauss(0, 1.5) for x in row] for row in old],
        "entropy": rows(0.1, 3),
        "turn": [[t // 2 + 3 * (r == 2) for t in range(n)] for r, n in enumerate(lengths)],
        "trajectory": trajectory,
        **changes,
    }
    advantage = rows(-2, 2)
    if not whole:
        return token_batch(logp, advantage, group=[0, 0, 0, 1, 1], **given)
    return whole_batch(logp, advantage, success=[1, 0, 1, 0], group=[0, 0, 1, 1], **given)


def slopes(value: Tensor, batch: Any) -> Tensor:
    (found,) = torch.autograd.grad(value.sum(), [batch.logp_RT])
    return found


def sampled(batch: Any) -> list[tuple[int, int]]:
    return [(r, t) for r, t in batch.mask_RT.nonzero().tolist()]


# --- clip: every option, values and slopes --------------------------------------------------------------


def clip_token(
    log_ratio: float, a: float, low: float, high: float, dual: float | None
) -> tuple[float, float]:
    """A token's loss and its slope in log π, from PPO's formula by cases."""
    ratio = math.exp(log_ratio)
    if a >= 0:  # the gain is held at 1 + high
        loss, slope = (-(1 + high) * a, 0.0) if ratio > 1 + high else (-ratio * a, -ratio * a)
    else:  # the gain is held at 1 − low, the loss at −dual·A
        loss, slope = (-(1 - low) * a, 0.0) if ratio < 1 - low else (-ratio * a, -ratio * a)
        if dual is not None and ratio > dual:
            loss, slope = -dual * a, 0.0
    return loss, slope


OPTIONS = [
    {},
    {"low": 0.2, "high": 0.28},
    {"low": 0.05, "high": 0.6},
    {"low": 0.6, "high": 0.05},
    {"dual": None},
    {"dual": 1.3, "high": 0.1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_clip_is_the_formula(options: Mapping[str, Any]) -> None:
    full = {"low": 0.2, "high": 0.2, "dual": 3.0, **options}
    for seed in BATCHES:
        batch: TokenBatch = numbers(random.Random(seed))
        loss_RT, metrics = get_component("loss", "clip").build(options)(batch)
        slope_RT, places = slopes(loss_RT, batch), sampled(batch)
        counts = dict.fromkeys(("clip_low", "clip_high", "clip_dual"), 0)
        for r, t in places:
            log_ratio = number(batch.logp_RT[r, t] - batch.old_logp_RT[r, t])
            a = number(batch.advantage_RT[r, t])
            loss, slope = clip_token(log_ratio, a, **full)
            assert number(loss_RT[r, t]) == pytest.approx(loss)
            assert number(slope_RT[r, t]) == pytest.approx(slope)
            counts["clip_low"] += a < 0 and math.exp(log_ratio) < 1 - full["low"]
            counts["clip_high"] += a > 0 and math.exp(log_ratio) > 1 + full["high"]
            counts["clip_dual"] += a < 0 and full["dual"] is not None and math.exp(log_ratio) > full["dual"]
        for name, count in counts.items():
            assert number(metrics.get(name, torch.zeros(()))) == pytest.approx(count / len(places))


def test_swapped_bounds_of_clip_are_noticed() -> None:
    """Clip-higher: what is allowed to rise by 28 % may fall by 20 % only."""
    batch = token_batch([[math.log(1.25), math.log(0.75)]], [[1.0, -1.0]], old_logp=[[0.0, 0.0]])
    clip = get_component("loss", "clip")
    found = slopes(clip.build({"low": 0.2, "high": 0.28})(batch).loss_RT, batch)
    assert found.tolist() == [[pytest.approx(-1.25), 0.0]]
    found = slopes(clip.build({"low": 0.28, "high": 0.2})(batch).loss_RT, batch)
    assert found.tolist() == [[0.0, pytest.approx(0.75)]]


# --- losses of the whole ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"share": 0.3}, {"share": 0.3, "coefficient": 0.2}], ids=str)
def test_kl_cov_is_the_formula(options: Mapping[str, Any]) -> None:
    full = {"share": 0.002, "coefficient": 1.0, **options}
    for seed in BATCHES:
        batch = numbers(random.Random(seed), whole=True)
        found, metrics = get_component("loss", "kl_cov").build(options)(batch)
        places = sampled(batch)
        a = {at: number(batch.advantage_RT[at]) for at in places}
        logp = {at: number(batch.logp_RT[at]) for at in places}
        gap = {at: logp[at] - number(batch.old_logp_RT[at]) for at in places}
        mean_a, mean_logp = (sum(x.values()) / len(places) for x in (a, logp))
        by_cov = sorted(places, key=lambda at: -(a[at] - mean_a) * (logp[at] - mean_logp))
        held = by_cov[: max(1, int(full["share"] * len(places)))]
        total, slope_RT = 0.0, slopes(found, batch)
        for at in places:
            extra = full["coefficient"] if at in held else 0.0
            ratio, weight = math.exp(gap[at]), number(batch.weight_RT[at])
            total += weight * (-ratio * a[at] + extra * abs(gap[at]))
            slope = weight * (-ratio * a[at] + extra * math.copysign(1, gap[at]))
            assert number(slope_RT[at]) == pytest.approx(slope)
        assert number(found) == pytest.approx(total)
        assert number(metrics["cov_held"]) == pytest.approx(len(held) / len(places))


@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 0.5}, {"score": "ratio", "temperature": 1.0}, {"limit": 0.02, "penalty": 7.0}],
    ids=str,
)
def test_disco_is_the_formula(options: Mapping[str, Any]) -> None:
    full = {"score": "logp", "temperature": 10.0, "limit": 1e-4, "penalty": 1000.0, **options}
    for seed in BATCHES:
        batch = numbers(random.Random(seed), whole=True)
        found = get_component("loss", "disco").build(options)(batch).loss
        places, owner = sampled(batch), batch.trajectory_R.tolist()
        gap = {at: number(batch.logp_RT[at] - batch.old_logp_RT[at]) for at in places}
        score = {}
        for b in range(4):
            own = [at for at in places if owner[at[0]] == b]
            each = [
                math.exp(gap[at]) if full["score"] == "ratio" else number(batch.logp_RT[at]) for at in own
            ]
            score[b] = sum(each) / len(own)
        tau = full["temperature"]
        margins = [score[0] - tau * math.log(math.exp(score[1] / tau)), score[2] - score[3]]
        kl = -sum(gap.values()) / len(places)
        wanted = -sum(margins) / 2 + full["penalty"] * max(0.0, kl - full["limit"]) * kl
        assert number(found) == pytest.approx(wanted)


def test_disco_weighs_hard_failures_more() -> None:
    """The slope in a failure's score is softmax(s/τ) of the group's failures: the worked weights of the formula book."""
    batch = whole_batch([[-0.5], [-0.7], [-0.6], [-0.9], [-1.2]], success=[1, 1, 0, 0, 0])
    for tau, wanted in ((10.0, [0.3434, 0.3332, 0.3234]), (1.0, [0.4368, 0.3236, 0.2397])):
        found = get_component("loss", "disco").build({"temperature": tau})(batch).loss
        assert slopes(found, batch)[:, 0].tolist() == pytest.approx([-0.5, -0.5, *wanted], abs=1e-4)


# --- corrections --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["token", "turn", "trajectory"])
def test_corrections_are_the_formula(level: str) -> None:
    for seed in BATCHES:
        batch = numbers(random.Random(seed))
        tis_RT = get_component("correction", "tis").build({"level": level, "cap": 1.4})(batch)
        mis_RT = get_component("correction", "mis").build({"level": level, "low": 0.6, "high": 1.5})(batch)
        units: dict[Any, float] = {}
        for r, t in sampled(batch):
            gap = number(batch.old_logp_RT[r, t] - batch.behaviour_logp_RT[r, t])
            units[unit(batch, r, t, level)] = units.get(unit(batch, r, t, level), 0.0) + gap
        for r, t in sampled(batch):
            ratio = math.exp(units[unit(batch, r, t, level)])
            assert number(tis_RT[r, t]) == pytest.approx(min(ratio, 1.4))
            assert number(mis_RT[r, t]) == pytest.approx(ratio if 0.6 <= ratio <= 1.5 else 0.0)


def unit(batch: TokenBatch, r: int, t: int, level: str) -> tuple[int, ...]:
    b, k = int(batch.trajectory_R[r]), int(batch.turn_RT[r, t])
    return {"token": (r, t), "turn": (b, k), "trajectory": (b,)}[level]
