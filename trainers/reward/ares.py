"""ARES: effort beyond what is usual for tasks of this difficulty costs where they are easy, and pays where they are hard."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from statistics import mean
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import paid_instead, paid_on_last, replace_turns, signal_of


class Difficulty(NamedTuple):
    """Constants of tasks of one difficulty; ``wrong`` is the share of the cap that a wrong answer's effort may earn."""

    least: float
    margin: float
    bend: float
    temperature: float
    cap: float
    wrong: float


EASY = Difficulty(2 / 3, 0.15, 2, 2, 1, 0.6)
MEDIUM = Difficulty(1 / 3, 0.25, 3, 2.5, 1, 0.8)
HARD = Difficulty(0.0, 0.35, 4, 3, 1.2, 1)


@component("reward", "ares", paper="2510.08457", whole=True, asks=("signal",), reads=("rewards",))
def ares(
    groups: Sequence[Group],
    *,
    signal: str | None = None,
    easy: float = 0.5,
    medium: float = 0.5,
    hard: float = 0.5,
) -> list[Group]:
    """Success, and beside it what effort N is worth that differs from the mean of all episodes of tasks as difficult; nothing else is paid.

    ARES, AEPO (Chen et al. 2025). A task is easy where 2/3 of its group or more are solved, medium from 1/3 on, else hard. With Δ = N − the mean N of the
    update's episodes of this difficulty, margin m = max(1, f·mean), f = .15, .25, .35, cap C = a·(1, 1, 1.2), a the options ``easy``, ``medium``,
    ``hard``, h(x) = x²/2κ up to κ and x − κ/2 beyond (κ = 2, 3, 4) and T = 2, 2.5, 3: a solved easy task costs min(C, h(max(Δ − m, 0))/(m + κ)·C), a medium one
    the same of \\|Δ\\| − m; a solved hard one earns σ((Δ + m)/T)·C, or costs min(C, ½·h(−Δ − m)/(m + κ)·C) where Δ < −m. What is not solved
    earns σ(max(Δ − m, 0)/T)·C·(.6, .8, 1), which is half of that without any excess. N is the number of an episode's turns, or the sum of ``signal`` over them;
    the paper counts words of hesitation before windows of high entropy. Left out: that count, and that a follows the training (0 to 2, steps of
    .05): `schedule` it.

    Worked by hand with C of a = 0.5: easy and solved, N = 10 where 4 is usual; the same for medium; hard and solved, 4 where 6 is usual;
    medium and wrong, 10 where 4 is usual, and 4; hard and solved with one where two are usual, and 20: −½·(12 − 2)/(7 + 4)·0.6.

    >>> [round(worth(EASY, True, 10, 4, 0.5), 4), round(worth(MEDIUM, True, 10, 4, 0.5), 4), round(worth(HARD, True, 4, 6, 0.6), 4)]
    [-0.5, -0.4375, 0.305]
    >>> [round(worth(MEDIUM, False, n, 4, 0.5), 4) for n in (10, 4)]
    [0.3523, 0.2]
    >>> round(worth(HARD, True, 1, 2, 0.6), 4), round(worth(HARD, True, 1, 20, 0.6), 4)  # just at the margin, and far below
    (0.3, -0.2727)
    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> solved = [episode([0] * n, end=EndReason.SOLVED) for n in (1, 1, 1, 9)]
    >>> [round(one.trajectory.total_reward, 4) for one in ares([solved])[0]]
    [1.0, 1.0, 1.0, 0.5]

    Raises:
        RecipeError: a cap is below 0.
    """
    not_below_zero("reward 'ares'", easy=easy, medium=medium, hard=hard)
    of = [_difficulty(group) for group in groups]
    effort = [[_effort(one, signal) for one in group] for group in groups]
    usual = {
        kind: mean(n for found, every in zip(of, effort, strict=True) if found is kind for n in every)
        for kind in {*of}
    }
    caps = {kind: a * kind.cap for kind, a in ((EASY, easy), (MEDIUM, medium), (HARD, hard))}

    def paid(one: Episode, kind: Difficulty, n: float) -> Episode:
        score = worth(kind, one.success, n, usual[kind], caps[kind])
        return replace_turns(
            one, lambda turns: paid_on_last(paid_instead(turns, float(one.success)), "effort", score)
        )

    return [
        [paid(one, kind, n) for one, n in zip(group, every, strict=True)]
        for group, kind, every in zip(groups, of, effort, strict=True)
    ]


def worth(kind: Difficulty, solved: bool, n: float, usual: float, cap: float) -> float:
    """Pay of an effort beside success."""
    over, m = n - usual, max(1.0, kind.margin * usual)
    if not solved:
        return _sigmoid(max(over - m, 0.0) / kind.temperature) * cap * kind.wrong
    if kind is HARD and over >= -m:
        return _sigmoid((over + m) / kind.temperature) * cap
    x = over - m if kind is EASY else abs(over) - m
    return -min(cap, (0.5 if kind is HARD else 1.0) * _bent(max(x, 0.0), kind.bend) / (m + kind.bend) * cap)


def _bent(x: float, bend: float) -> float:
    """Huber's function: a square at first, then a line."""
    return x * x / (2 * bend) if x <= bend else x - bend / 2


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def _difficulty(group: Group) -> Difficulty:
    """By the share of its episodes that were solved."""
    rate = sum(one.success for one in group) / len(group)
    return next(kind for kind in (EASY, MEDIUM, HARD) if rate >= kind.least)


def _effort(one: Episode, signal: str | None) -> float:
    turns = one.trajectory.turns
    return float(len(turns)) if signal is None else sum(signal_of(turn, signal) for turn in turns)
