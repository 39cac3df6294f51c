"""Compares losses with their formulas on random minibatches."""

from __future__ import annotations

import copy
import dataclasses
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from losses import LOTS, METRICS, Batch, Token
from plain import Refused, agree
from ragged import padded
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import get_component
from turnwise.trainers.core import Stateful, TokenBatch, WholeBatch
from turnwise.trainers.kit.toy_batches import token_batch, whole_batch

Place = tuple[int, int]
SEEDS = range(12)
ROW, TRAJECTORY = ("turn", "trajectory"), [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]
GROUP = [0, 0, 0, 0, 1, 1, 1, 2, 3, 3]
STEP = 1e-6
APART = ("weight", "teacher_logp", "nucleus")
"""What the toy batches do not take."""


def minibatch(seed: int) -> tuple[dict[str, Any], Batch]:
    """Rows of tokens as the toy batches take them, and the same as plain tokens.

    Ten trajectories in four groups: a mixed one, one that succeeds always or never now and then, a lone trajectory, and a
    pair. The second trajectory has two rows, of which the later turns come first now and then.
    """
    rng = random.Random(f"losses {seed}")
    lengths = [rng.randint(1, 5) for _ in TRAJECTORY]

    def rows(low: float, high: float) -> list[list[float]]:
        return [[rng.uniform(low, high) for _ in range(n)] for n in lengths]

    def near(of: list[list[float]], spread: float) -> list[list[float]]:
        return [[-abs(x + rng.gauss(0, spread)) for x in row] for row in of]

    old = rows(-4, -0.1)
    second = 2 if seed % 4 != 1 else 1
    given: dict[str, Any] = {
        "logp": near(old, [0.3, 2.0, 0.6, 0.001][seed % 4]) if seed != 8 else old,
        "advantage": [[x if rng.random() < 0.92 else 0.0 for x in row] for row in rows(-2, 2)],
        "old_logp": old,
        "behaviour_logp": near(old, 0.5),
        "reference_logp": near(old, [0.1, 2.5, 0.6, 15][seed % 4]),
        "teacher_logp": near(old, [2.5, 0.6, 15][seed % 3]),
        "entropy": rows(0.1, 3),
        "weight": rows(0.01, 0.06),
        "turn": [[t // 2 + 3 * (r == second) for t in range(n)] for r, n in enumerate(lengths)],
        "trajectory": TRAJECTORY,
    }
    of_nucleus = random.Random(f"nuclei {seed}")  # whatever came before is drawn as it was
    given["nucleus"] = [[x * of_nucleus.random() for x in row] for row in given["entropy"]]
    seldom(seed, given)
    batch = trajectories(rng, seed)
    kept = [r for r, b in enumerate(TRAJECTORY) if batch.kept[b]]
    given = {name: [rows[r] for r in kept] for name, rows in given.items()}
    of_token = [name for name in given if name not in ROW]
    for r, row in enumerate(given["logp"]):
        for t in range(len(row)):
            x = {name.removesuffix("_logp"): given[name][r][t] for name in of_token}
            batch.tokens[r, t] = Token(**x, trajectory=given["trajectory"][r], turn=given["turn"][r][t])
    return given, batch


def seldom(seed: int, given: Mapping[str, Any]) -> None:
    """What chance does not bring: extreme ratios, certain tokens, a covariance above 5, nothing that was good."""
    logp, old, advantage = (given[name] for name in ("logp", "old_logp", "advantage"))
    if seed == 4:
        logp[0][0], old[0][0], advantage[0][0] = -1.0, -15.0, -1.0
    if seed == 6:
        logp[0][0], old[0][0], advantage[0][0] = -5.0, -5.1, -2.0
    if seed == 10:
        logp[0][0], old[0][0], advantage[0][0] = -1.0, 0.0, -1.0
        logp[4][0], old[4][0], advantage[4][0] = 0.0, -0.7, -1.0
    if seed == 11:
        advantage[:] = [[-abs(x) for x in row] for row in advantage]


def trajectories(rng: random.Random, seed: int) -> Batch:
    """What is known of the trajectories alone: what they earned, and whether they are read."""
    batch = Batch(group=GROUP, success=[rng.random() < 0.5 for _ in GROUP])
    batch.rewards = [
        [rng.choice([-0.25, 0.0, 0.25, 0.5, 1.0]) for _ in range(rng.randint(1, 3))] for _ in GROUP
    ]
    if seed % 4 in (1, 2):
        batch.success[4:7] = [seed % 4 == 1] * 3
    if seed == 7:
        batch.success[:] = [False] * len(GROUP)
        batch.rewards[:] = [[0.5, 0.0], *[[0.5]] * (len(GROUP) - 1)]
    if seed == 10:
        batch.rewards[:] = [[0.25, 0.25]] * 9 + [[1.0]]
    if seed % 3 == 0:
        batch.rewards[8] = [*batch.rewards[9], 0.0]
    batch.kept = [(b != 2 or seed % 2 == 0) and (b != 7 or seed != 6) for b in range(len(GROUP))]
    if seed in (9, 11):  # a single trajectory is read, or a single pair
        batch.kept[:] = [b == 9 or (b, seed) == (8, 11) for b in range(len(GROUP))]
    return batch


def token_rows(given: Mapping[str, Any], batch: Batch) -> TokenBatch:
    rows = {name: x for name, x in given.items() if name not in APART}
    made = token_batch(**rows, group=[batch.group[b] for b in given["trajectory"]])
    return dataclasses.replace(made, signals=told(given))


def told(given: Mapping[str, Any]) -> dict[str, Any]:
    """What another model says of the tokens, by whatever name a loss asks for it."""
    told_RT = padded(given["teacher_logp"])
    return {"token_teacher_logp": told_RT, "token_tempered_reference": told_RT}


def whole_rows(given: Mapping[str, Any], batch: Batch) -> WholeBatch:
    """The weights of the reducer differ, and so do those of the filter."""
    rows = {name: x for name, x in given.items() if name not in APART}
    made = whole_batch(
        **rows,
        group=batch.group,
        success=[int(x) for x in batch.success],
        reward=batch.rewards,
        weight=[float(x) * (2.5 if b == 0 else 1.0) for b, x in enumerate(batch.kept)],
    )
    return dataclasses.replace(
        made,
        weight_RT=padded(given["weight"]),
        nucleus_RT=padded(given["nucleus"]).requires_grad_(),
        signals=told(given),
    )


# --- laws ---------------------------------------------------------------------------------------------------------


def loss_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    """Three minibatches are met one after another, by a part that is stored and read again between them."""
    playing: Any = part
    whole, before = get_component("loss", name).whole, list[Batch]()
    for seed in SEEDS:
        if seed % 3 == 0:
            playing, before = copy.deepcopy(part), []
        given, batch = minibatch(seed)
        batch.before = before
        said = f"batch {seed}"
        try:
            metrics = (law_of_whole if whole else law_of_tokens)(name, playing, formula, given, batch, said)
        except RecipeError:
            with pytest.raises(Refused):
                METRICS[name](batch, **_options(formula))
            return
        wanted = METRICS[name](batch, **_options(formula))
        assert set(metrics) == set(wanted), said
        for metric, x in metrics.items():
            assert math.isclose(x.item(), wanted[metric], rel_tol=1e-6, abs_tol=1e-9), (
                f"{said}: {metric} is {x.item()}, not {wanted[metric]}"
            )
        before = [*before, batch]
        if isinstance(playing, Stateful):
            stored = playing.state()
            playing = copy.deepcopy(part)
            playing.restore(stored)


def _options(formula: Any) -> Mapping[str, Any]:
    return formula.keywords


def slopes(loss: Tensor, rows: TokenBatch | WholeBatch) -> dict[str, Tensor]:
    leaves = {"logp": rows.logp_RT, "entropy": rows.entropy_RT}
    if isinstance(rows, WholeBatch) and rows.nucleus_RT is not None:
        leaves["nucleus"] = rows.nucleus_RT
    grown = torch.autograd.grad(loss.sum(), [*leaves.values()], allow_unused=True, materialize_grads=True)
    return dict(zip(leaves, grown, strict=True))


def law_of_tokens(
    name: str,
    part: Callable[..., Any],
    formula: Callable[..., float],
    given: dict[str, Any],
    batch: Batch,
    said: str,
) -> Mapping[str, Tensor]:
    rows = token_rows(given, batch)
    loss_RT, metrics = part(rows)
    assert not loss_RT[~rows.mask_RT].any()
    grown = slopes(loss_RT, rows)
    for at, token in batch.tokens.items():
        agree(loss_RT[at].item(), formula(token, token), f"{said}, token {at}")
        for leaf, slope_RT in grown.items():
            x = getattr(token, leaf)
            up, down = (
                formula(dataclasses.replace(token, **{leaf: x + step}), token) for step in (STEP, -STEP)
            )
            steep = (up - down) / (2 * STEP)
            assert math.isclose(slope_RT[at].item(), steep, rel_tol=1e-4, abs_tol=1e-6), (
                f"{said}, token {at}: slope in {leaf} is {slope_RT[at].item()}, not {steep}"
            )
    return metrics


def law_of_whole(
    name: str,
    part: Callable[..., Any],
    formula: Callable[..., float],
    given: dict[str, Any],
    batch: Batch,
    said: str,
) -> Mapping[str, Tensor]:
    rows = whole_rows(given, batch)
    loss, metrics = part(rows)
    grown = slopes(loss, rows)
    if name in LOTS:
        batch.out = taken_out(grown["logp"], batch, *LOTS[name](batch, **_options(formula)), said)
    agree(loss.item(), formula(batch, batch), said)
    rng = random.Random(said)
    for direction in range(2):
        lean = {at: {leaf: rng.gauss(0, 1) for leaf in grown} for at in batch.tokens}
        up, down = (formula(moved(batch, lean, step), batch) for step in (STEP, -STEP))
        found = sum(grown[leaf][at].item() * a for at, one in lean.items() for leaf, a in one.items())
        steep = (up - down) / (2 * STEP)
        assert math.isclose(found, steep, rel_tol=1e-5, abs_tol=1e-7 * (1 + abs(loss.item()))), (
            f"{said}: slope in direction {direction} is {found}, not {steep}"
        )
    return metrics


def moved(batch: Batch, lean: Mapping[Place, Mapping[str, float]], step: float) -> Batch:
    """All tokens' log-probabilities and entropies a little further, everything else held fixed."""
    tokens = {
        at: dataclasses.replace(t, **{leaf: getattr(t, leaf) + step * a for leaf, a in lean[at].items()})
        for at, t in batch.tokens.items()
    }
    return dataclasses.replace(batch, tokens=tokens)


def taken_out(slope_RT: Tensor, batch: Batch, among: set[Place], count: int, said: str) -> set[Place]:
    """Which tokens a lot took out: those without slope among which it was drawn. They must be as many as is asked for."""
    still = {at for at in among if slope_RT[at] == 0}
    sure = {at for at in still if batch.tokens[at].advantage != 0}  # others have no slope either way
    assert len(sure) <= min(count, len(among)) <= len(still), (
        f"{said}: {len(sure)} are taken out, not {count}"
    )
    return still
