"""Distillation, outcome by outcome: the teacher's likeliest tokens, and all others as one more."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from typing import Any

import torch
from plain import Refused, agree, mean, reference, refuses

from turnwise.trainers.core import TeacherTop
from turnwise.trainers.kit.toy_batches import token_batch

STEP = 1e-6


def jensen_shannon(q: list[float], p: list[float], beta: float = 0.0) -> float:
    """Of two lists of probabilities: KL(q‖p), KL(p‖q), or the Jensen–Shannon divergence with their mixture."""
    if not 0 <= beta <= 1:
        raise Refused
    if beta == 0:
        return sum(a * math.log(a / b) for a, b in zip(q, p, strict=True))
    if beta == 1:
        return sum(b * math.log(b / a) for a, b in zip(q, p, strict=True))
    m = [beta * a + (1 - beta) * b for a, b in zip(q, p, strict=True)]
    return beta * jensen_shannon(q, m) + (1 - beta) * jensen_shannon(p, m)


def with_rest(logs: list[float]) -> list[float]:
    known = [math.exp(x) for x in logs]
    return [*known, max(1e-9, 1 - sum(known))]


def outcomes(rng: random.Random, likely: int) -> list[float]:
    """Log-probabilities of the likeliest tokens of seven."""
    raw = [math.exp(rng.gauss(0, 1.5)) for _ in range(7)]
    return [math.log(x / sum(raw)) for x in sorted(raw, reverse=True)[:likely]]


def law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    for seed in range(6):
        rng = random.Random(f"distilled {seed}")
        likely, lengths = rng.choice([1, 3, 7]), [3, 1]
        q, p = ([[outcomes(rng, likely) for _ in range(n)] for n in lengths] for _ in range(2))
        for row in p:
            for one in row:
                rng.shuffle(one)  # whose likeliest they are is the teacher's choice
        batch = token_batch([[-1.0] * n for n in lengths], advantage=[[rng.gauss(0, 1)] * n for n in lengths])
        padded = [[[*row, *[[0.0] * likely] * (3 - len(row))] for row in of] for of in (q, p)]
        policy_RTJ = torch.tensor(padded[1], dtype=torch.float64, requires_grad=True)
        teacher_RTJ = torch.tensor(padded[0], dtype=torch.float64)
        top = TeacherTop(torch.zeros(policy_RTJ.shape, dtype=torch.long), teacher_RTJ, policy_RTJ)
        given = dataclasses.replace(batch, top=top)
        try:
            formula(with_rest(q[0][0]), with_rest(p[0][0]))
        except Refused:
            refuses(lambda given=given: part(given))
            continue
        loss_RT, metrics = part(given)
        values: list[float] = []
        (slope_RTJ,) = torch.autograd.grad(loss_RT.sum(), policy_RTJ)
        for r, n in enumerate(lengths):
            assert not loss_RT[r, n:].any()
            assert not slope_RTJ[r, n:].any()
            for t in range(n):
                teacher, own = with_rest(q[r][t]), p[r][t]
                values.append(formula(teacher, with_rest(own)))
                agree(loss_RT[r, t].item(), values[-1], f"batch {seed}, token {r, t}")
                for j in range(likely if likely < 7 else 0):
                    up, down = (
                        formula(teacher, with_rest([x + s * (i == j) for i, x in enumerate(own)]))
                        for s in (STEP, -STEP)
                    )
                    assert math.isclose(
                        slope_RTJ[r, t, j].item(), (up - down) / (2 * STEP), rel_tol=1e-4, abs_tol=1e-6
                    )
        assert {*metrics} == {"distill"}
        agree(metrics["distill"].item(), mean(values), "metric")
    for lacking in (None, TeacherTop(torch.zeros(1, 1, 1).long(), torch.zeros(1, 1, 1))):
        refuses(lambda lacking=lacking: part(dataclasses.replace(token_batch([[-1.0]]), top=lacking)))


def jeffreys(q: list[float], p: list[float], beta: float) -> float:
    """A share of the divergence one way, and the rest of it the other way."""
    if beta < 0 or beta > 1:
        raise Refused
    forward = sum(a * math.log(a / b) for a, b in zip(q, p, strict=True))
    reverse = sum(b * math.log(b / a) for a, b in zip(q, p, strict=True))
    return forward - beta * (forward - reverse)


@reference(
    "loss", "distill", law=law, beta=[0.3, 1.0, 1.5, -0.5], divergence=["jeffreys"],
    also=[{"divergence": "jeffreys", "beta": beta} for beta in (0.5, 1.0, 1.5, -0.5)],
)  # fmt: skip
def distill(
    teacher: list[float], policy: list[float], beta: float = 0.0, divergence: str = "jensen_shannon"
) -> float:
    return (jeffreys if divergence == "jeffreys" else jensen_shannon)(teacher, policy, beta)
