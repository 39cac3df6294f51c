"""What effort is paid by difficulty: the reward that looks at all groups of an update, by a table in plain numbers."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from math import exp
from typing import Any

from law import plays
from plain import Refused, agree, mean, reference, refuses

TABLE = {  # least success, margin, κ, temperature, factor of the cap, share of it for what is wrong
    "easy": (2 / 3, 0.15, 2.0, 2.0, 1.0, 0.6),
    "medium": (1 / 3, 0.25, 3.0, 2.5, 1.0, 0.8),
    "hard": (0.0, 0.35, 4.0, 3.0, 1.2, 1.0),
}


Told = list[list[tuple[bool, int, float]]]
"""By group and episode: whether it was solved, how many turns it has, the sum of a signal."""


@functools.cache
def drawn(seed: int) -> tuple[list[list[Any]], Told]:
    """The groups of an update, some of them of three episodes."""
    rng = random.Random(f"efforts {seed}")
    groups, told = list[list[Any]](), list[list[tuple[bool, int, float]]]()
    for _ in range(rng.randint(1, 5)):
        size = 3 if rng.random() < 0.5 else 99
        episodes, plain = plays(rng.randrange(40))
        groups.append(episodes[:size])
        both = zip(groups[-1], plain[:size], strict=True)
        told.append([(one.success, len(e.signal), sum(e.signal)) for one, e in both])
    return groups, told


def law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    """Updates of several groups, some of which are of one difficulty, some alone."""
    for seed in range(30):
        groups, told = drawn(seed)
        try:
            wanted = formula(told)
        except Refused:
            refuses(lambda groups=groups: part(groups))
            return
        for episodes, expected, found in zip(groups, wanted, part(groups), strict=True):
            assert len(found) == len(episodes)
            for one, (success, effort) in zip(found, expected, strict=True):
                turns = one.trajectory.turns
                assert not any(turn.reward for turn in turns[:-1])
                for last in turns[-1:]:
                    agree(last.reward, success + effort, f"update {seed}")
                    agree(last.rewards["effort"], effort, f"update {seed}")


@reference(
    "reward", "ares", law=law, signal=["principle", "standing"], easy=[1.5, 0.0, -0.1], medium=[1.5, 0.0, -0.1], hard=[1.5, 0.0, -0.1],
    also=[{"signal": "principle", "easy": 0.9, "medium": 1.1, "hard": 0.2}],
)  # fmt: skip
def ares(
    told: Told,
    signal: str | None = None,
    easy: float = 0.5,
    medium: float = 0.5,
    hard: float = 0.5,
) -> list[list[tuple[float, float]]]:
    if min(easy, medium, hard) < 0:
        raise Refused
    share = {"easy": easy, "medium": medium, "hard": hard}
    efforts = [
        [{None: float(k), "principle": q, "standing": 2 * q}[signal] for _, k, q in group] for group in told
    ]
    kinds = [
        next(
            (
                name
                for name, row in TABLE.items()
                if group and sum(s for s, *_ in group) >= row[0] * len(group) - 1e-9
            ),
            "hard",
        )
        for group in told
    ]
    usual = {
        name: mean(
            [n for kind, group in zip(kinds, efforts, strict=True) if kind == name for n in group] or [0.0]
        )
        for name in TABLE
    }

    def of(kind: str, solved: bool, n: float) -> float:
        _, f, kappa, temperature, factor, wrong = TABLE[kind]
        cap, delta = share[kind] * factor, n - usual[kind]
        margin = f * usual[kind] if f * max(usual[kind], 1) > 1 else 1.0

        def logistic(x: float) -> float:
            return exp(x) / (1 + exp(x))

        def huber(x: float) -> float:
            return 0.0 if x < 0 else x**2 / 2 / kappa if x <= kappa else x - kappa / 2

        if not solved:
            return logistic(max(0.0, delta - margin) / temperature) * cap * wrong
        if kind == "easy":
            return -min(cap, cap * huber(delta - margin) / (margin + kappa))
        if kind == "medium":
            return -min(cap, cap * huber(abs(delta) - margin) / (margin + kappa))
        if delta >= -margin:
            return cap * logistic((delta + margin) / temperature)
        return -min(cap, cap * huber(-delta - margin) / (margin + kappa) / 2)

    return [
        [(float(solved), of(kind, solved, n)) for (solved, *_), n in zip(group, every, strict=True)]
        for group, kind, every in zip(told, kinds, efforts, strict=True)
    ]
