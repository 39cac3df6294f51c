"""Signals that share out a return: least squares in plain numbers, over turns that differ in what they have."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from typing import Any

from learned import scene
from measured import Part, measured, near, of_turns
from plain import reference, refuses

from turnwise.agents.core import Episode, Reply, Turn
from turnwise.envs.messages import Message
from turnwise.registry import get_component
from turnwise.tasks.core import derive_rng
from turnwise.tools.core import ToolCall
from turnwise.trainers.check.small_policy import SHAPES, signal_setup
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import TrainingBatch, collate

Matrix = list[list[float]]
NOTHING: Any = None  # it looks at nothing but the episodes
LONG = ([0.5, 0.0, -0.25, 1.0], [0.0, 1.0, 0.0], [2.0])


def varied(groups: Sequence[Group], said: str) -> list[Group]:
    """The groups with turns that were refused, met states again, said an act again, called tools."""
    rng = random.Random(said)

    def turn(one: Turn) -> Turn:
        calls = tuple(ToolCall("look", {"x": i}) for i in range(rng.randrange(3)))
        reply = one.reply._replace(message=Message("assistant", rng.choice(["a", "b"]), tool_calls=calls))
        return dataclasses.replace(
            one, reply=reply, state_key=rng.choice(["s", "t", "u"]), bad_action=rng.random() < 0.4
        )

    def other(one: Episode) -> Episode:
        first = one.trajectory
        return dataclasses.replace(
            one, trajectories={first.agent: dataclasses.replace(first, turns=tuple(map(turn, first.turns)))}
        )

    return [[other(one) for one in group] for group in groups]


def batches() -> list[tuple[TrainingBatch, list[Group]]]:
    _, groups = scene()
    long = [_spoken(rewards, SHAPES[i]) for i, rewards in enumerate(LONG)]
    empty, alone = episode([]), varied([long[:1]], "zero")
    every = (
        [[empty]],
        alone,
        varied(groups, "one"),
        varied([[*long, empty]], "two"),
        varied(groups, "three"),
    )
    return [(collate(some), some) for some in every]


def _spoken(rewards: Sequence[float], shape: Any) -> Episode:
    """An episode of these rewards, whose turns have tokens."""
    made = episode([*rewards])
    prompt, action = shape[0]
    turns = tuple(
        dataclasses.replace(
            turn,
            reply=Reply(Message("assistant", "!"), tuple(range(prompt)), tuple(range(action + k)), tuple([-1.0] * (action + k))),
        )
        for k, turn in enumerate(made.trajectory.turns)
    )  # fmt: skip
    return dataclasses.replace(
        made, trajectories={"agent": dataclasses.replace(made.trajectory, turns=turns)}
    )


def factor(name: str, turns: Sequence[Turn], k: int) -> float:
    keys, acts = [t.state_key for t in turns], [(t.action.content, len(t.action.tool_calls)) for t in turns]
    return {
        "one": 1.0,
        "valid": 0.0 if turns[k].bad_action else 1.0,
        "new": 1.0 if keys.index(keys[k]) == k else 0.0,
        "again": 0.0 if acts.index(acts[k]) == k else 1.0,
        "calls": len(turns[k].action.tool_calls),
        "tokens": len(turns[k].reply.action_ids) / 100,
        "last": 1.0 if turns[k] is turns[-1] else 0.0,
    }[name]


def turned(matrix: Matrix) -> list[tuple[float, list[float]]]:
    """Eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's rotations."""
    n = len(matrix)
    a = [[*row] for row in matrix]
    v = [[float(i == j) for j in range(n)] for i in range(n)]
    for _ in range(60):
        for p in range(n):
            for q in range(p + 1, n):
                angle = 0.5 * math.atan2(2 * a[p][q], a[q][q] - a[p][p])
                c, s = math.cos(angle), math.sin(angle)
                for m in (a, v):
                    for row in m:
                        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
                a[p], a[q] = (
                    [c * x - s * y for x, y in zip(a[p], a[q], strict=True)],
                    [s * x + c * y for x, y in zip(a[p], a[q], strict=True)],
                )
    return [(a[i][i], [row[i] for row in v]) for i in range(n)]


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


@reference(
    "signal", "lare", factors=[("one", "again", "calls", "tokens"), ("valid",), (), ("one", "luck")],
    sampled=[2, 3, 1, -1], corrected=[False], ridge=[0.5, 0.0],
    also=[{"sampled": 2, "corrected": False}, {"sampled": 1, "corrected": False}, {"sampled": 2, "ridge": 3.0}],
)  # fmt: skip
def lare(
    make: Part,
    factors: tuple[str, ...] = ("one", "valid", "new", "last"),
    sampled: int = 0,
    corrected: bool = True,
    ridge: float = 0.01,
) -> None:
    """Each episode (mean of r̂ over some turns − R/T)² − Var·(1 − K/T)/K, and ridge·|w|² on their mean."""
    setup = dataclasses.replace(signal_setup(get_component("signal", "lare")), seed=4)
    if not factors or "luck" in factors or ridge <= 0 or sampled < 0 or (corrected and sampled == 1):
        said = refuses(lambda: make(setup))
        assert ("luck" if "luck" in factors else "nothing" if not factors else f"ridge={ridge:g}") in said
        return
    signal, see = make(setup), NOTHING
    known: list[tuple[Matrix, float, list[int]]] = []
    kept = PartState()
    for n, (batch, groups) in enumerate(batches()):
        if n == 3:  # from a checkpoint
            signal = make(setup)
            signal.restore(kept)
        played = [one for group in groups for one in group]
        new: list[tuple[Matrix, float, list[int]]] = []
        for one in played:
            turns = one.trajectory.turns
            phi = [[factor(name, turns, k) for name in factors] for k in range(len(turns))]
            if not turns:
                continue
            places = [*range(len(turns))]
            if 0 < sampled < len(turns):
                places = derive_rng("lare", 4, len(known) + len(new)).sample(places, sampled)
            new.append((phi, sum(t.reward for t in turns), places))
        known += new

        size = range(len(factors))
        square, aim = [[0.0 for _ in size] for _ in size], [0.0 for _ in size]
        for phi, total, places in known:
            T, K = len(phi), len(places)
            middle = [sum(phi[k][f] for k in places) / K for f in size]
            for f in size:
                aim[f] += middle[f] * total / T / len(known)
                for g in size:
                    square[f][g] += middle[f] * middle[g] / len(known)
                    if corrected and K < T:
                        spread = sum((phi[k][f] - middle[f]) * (phi[k][g] - middle[g]) for k in places)
                        square[f][g] -= spread / (K - 1) * (1 - K / T) / K / len(known)
        w = [0.0 for _ in size]
        for much, way in turned(square):
            w = [x + y * dot(way, aim) / (max(0.0, much) + ridge) for x, y in zip(w, way, strict=True)]
        found = measured(signal, see, batch, groups)
        kept = signal.state()
        told = [one for one in of_turns(found.turn["lare"], batch) if one]
        near(told, [[dot(w, x) for x in phi] for phi, _, _ in new], "r̂", 1e-7)
        errors = [(sum(r) / len(r) - total / len(r)) ** 2 for r, (_, total, _) in zip(told, new, strict=True)]
        assert abs(found.metrics["lare_loss"] - (sum(errors) / len(errors) if errors else 0.0)) < 1e-9
