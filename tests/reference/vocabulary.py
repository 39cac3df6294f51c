"""ROVER: the target of a token looks at the mean log-probability of the vocabulary before the next one."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from typing import Any

from minibatches import SEEDS, STEP, minibatch, slopes, token_rows
from plain import agree, reference, refuses
from ragged import padded


def law(name: str, part: Callable[..., Any], formula: Callable[..., float]) -> None:
    """Values and slopes of every token, with means of the vocabulary that move, and without any that moved."""
    for seed in SEEDS:
        given, batch = minibatch(seed)
        rng = random.Random(f"rover {seed}")
        one = {b: rng.uniform(-2, 2) for b in sorted(set(given["trajectory"]))}
        given["advantage"] = [
            [one[b] * rng.uniform(0.5, 1.5) for _ in row]
            for b, row in zip(given["trajectory"], given["logp"], strict=True)
        ]
        longest = max(range(len(given["logp"])), key=lambda r: len(given["logp"][r]))
        given["advantage"][longest][-1] = 0.0
        old = [[rng.uniform(-6, -3) for _ in row] for row in given["logp"]]
        new = [[x + rng.gauss(0, 0.5) for x in row] for row in old]
        rows = dataclasses.replace(token_rows(given, batch), signals={"token_mean_logp": padded(old)})
        rows = dataclasses.replace(rows, advantage_RT=rows.advantage_RT.where(rows.mask_RT, 5.0))
        for now, moved in ((new, padded(new)), (old, None)):
            playing = dataclasses.replace(rows, mean_logp_RT=moved)
            loss_RT, metrics = part(playing)
            assert not loss_RT[~rows.mask_RT].any()
            slope_RT, kl, squares = slopes(loss_RT, playing)["logp"], list[float](), list[float]()
            for r, t in batch.tokens:
                turn = given["turn"][r]
                goes_on = t + 1 < len(turn) and turn[t + 1] == turn[t]
                change = now[r][t + 1] - old[r][t + 1] if goes_on else 0.0
                gap = given["logp"][r][t] - given["old_logp"][r][t]
                A = given["advantage"][r][t]
                expected = formula(gap, A, change)
                agree(loss_RT[r, t].item(), expected, f"batch {seed}, token {r, t}")
                steep = (formula(gap + STEP, A, change) - formula(gap - STEP, A, change)) / (2 * STEP)
                assert math.isclose(slope_RT[r, t].item(), steep, rel_tol=1e-4, abs_tol=1e-6), (seed, r, t)
                squares.append(expected)
                kl.append(math.exp(gap) - gap - 1)
            assert math.isclose(metrics["bellman"].item(), sum(squares) / len(squares), rel_tol=1e-6)
            assert math.isclose(metrics["kl_old"].item(), sum(kl) / len(kl), rel_tol=1e-6, abs_tol=1e-9)
            assert set(metrics) == {"bellman", "kl_old"}
        given["advantage"][longest][0] = -math.copysign(1.0, one[given["trajectory"][longest]])
        if len(given["logp"][longest]) > 2:
            both = dataclasses.replace(token_rows(given, batch), signals=rows.signals)
            refuses(lambda both=both: part(both))


@reference("loss", "rover", law=law, rho=[0.5], successor=[0.0, 2.0], also=[{"rho": 0.5, "successor": 0.5}])
def rover(gap: float, A: float, change: float, rho: float = 1.0, successor: float = 1.0) -> float:
    """``change`` of the mean before the next token; log-ratios are taken to lie within ±20."""
    target = A + successor * rho * change
    return (rho * max(-20.0, min(20.0, gap)) - target) ** 2
