"""Samplers that give unequal numbers of episodes: in stages, by intervals, by failures."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from chosen import MEMORIES, of_pool, remembers, stored, told, updates, visited
from drawn import SETUP, refused
from plain import agree, mean, reference
from scipy.stats import t

from turnwise.envs.core import EndReason
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup, SeenGroup

Make = Callable[..., Any]
Outcome = tuple[int, int]
"""The episodes that count, and those of them that succeeded."""


@functools.cache
def ended(solved: bool) -> Any:
    return episode([0.0], end=EndReason.SOLVED if solved else EndReason.FAILED)


def answered(asked: Sequence[GroupRequest], outcomes: Sequence[Outcome]) -> list[SeenGroup]:
    return [
        SeenGroup(one, [ended(i < c) for i in range(n)], 0.0)
        for one, (n, c) in zip(asked, outcomes, strict=True)
    ]


def new_tasks(make: Make, setup: SamplerSetup, sampler: Any) -> list[GroupRequest]:
    """They are those of `uniform`, and nothing is remembered."""
    assert (sampler.adds, sampler.by_success, sampler.returns) == (True, True, False)
    assert not sampler.state().numbers
    assert make(dataclasses.replace(setup, since=2, before=5)).plan(3, 0, 6)[0].index == 5 + 6
    asked = sampler.plan(2, 0, 6)
    assert [one.index for one in asked] == [*range(12, 18)]
    assert {(one.episodes, one.weight, one.visits) for one in asked} == {(setup.group_size, 1.0, 0)}
    return asked


def of_mass(a: Fraction, n: int, most: int, treats: str, std: bool) -> int:
    """The fewest more whose mass (n + d)·S reaches the peak, by squares where S is a root."""
    if a >= Fraction(1, 2):
        return 0
    square = 4 * a * (1 - a) if std else 4 * a**2 * (1 - a) ** 2
    peak = (n if std else Fraction(n, 2)) * (2 * (1 - a) if treats == "hard" else 1)
    return next((d for d in range(most - n) if (n + d) ** 2 * square >= peak**2), most - n)


@reference(
    "sampler",
    "dars",
    treats=["equal"],
    most=[9, 32],
    std=[True],
    also=[{"treats": "equal", "std": True}, {"treats": "equal", "most": 24}],
)
def dars(make: Make, treats: str = "hard", most: int = 64, std: bool = False) -> None:
    assert "most=3 " in refused(make, most=3)
    assert make(SETUP, most=4).sizes == {4}
    for n in (4, 5, 8):  # with 5 and 8 some masses are reached exactly, in roots and in fractions
        setup = dataclasses.replace(SETUP, group_size=n)
        sampler = make(setup)
        assert not sampler.unbiased
        assert sampler.sizes == {*range(n, most + 1)}
        asked = new_tasks(make, setup, sampler)
        for outcomes in (
            [(n, c) for c in (0, 1, 2, n // 2, n // 2 + 1, n)],
            [(n, 0), (n - 1, 0), (0, 0), (3, 1), (n - 1, 1), (2, 1)],
            [(n, n)] * 6,
            [(n, 0)] * 6,
        ):
            sizes = [
                n + (of_mass(Fraction(c, m) or Fraction(1, 2 * n), n, most, treats, std) if m else 0)
                for m, c in outcomes
            ]
            wanted = sampler.again(2, answered(asked, outcomes))
            assert [one.episodes for one in wanted] == sizes
            for one, size in zip(wanted, sizes, strict=True):
                agree(one.weight, size / mean([float(s) for s in sizes]), "weight")
            merged = [(one.episodes, c) for one, (_, c) in zip(wanted, outcomes, strict=True)]
            assert sampler.again(2, answered(wanted, merged)) == wanted, "two stages"


def narrows(n: int, c: int) -> float:
    """σ̂ of n successes and failures, from squares about the mean."""
    p = c / n
    if c in (0, n):
        p = (2 * c + 1) / (2 * n + 2)
        return math.sqrt(p - p * p)
    return math.sqrt((c * (1 - p) ** 2 + (n - c) * p**2) / (n - 1))


@reference(
    "sampler", "xrpo", phases=[1, 3], each=[3], most=[7], bonus=[0.0, 1.0], also=[{"most": 5, "each": 4}]
)
def xrpo(make: Make, phases: int = 2, each: int = 2, most: int = 32, bonus: float = 0.1) -> None:
    for option, wrong in (("phases", 0), ("each", 0), ("most", 4), ("bonus", -1.0)):
        assert f"{wrong:g} " in refused(make, **{option: wrong})
    assert make(SETUP, most=5, each=1).sizes == {4, 5}
    single = dataclasses.replace(SETUP, group_size=1)
    assert "group_size of 1" in refused(lambda _, **options: make(single, **options))
    make(dataclasses.replace(SETUP, group_size=2))
    sampler = make(SETUP)
    assert sampler.bonus == bonus
    assert sampler.sizes == {*range(4, most + 1)}
    asked = new_tasks(make, SETUP, sampler)
    for solved in ([0, 1, 2, 3, 4, 0], [2, 2, 2, 2, 2, 2], [0, 4, 0, 4, 0, 4], [0, 0, 0, 1, 0, 0]):
        counts, lost = [4] * 6, solved[0]  # the last group lost all of its episodes, or some of them
        outcomes = [*((4, c) for c in solved[:5]), (0 if lost else 3, 0)]
        left = 6 * each * phases
        while True:
            groups = answered(
                [dataclasses.replace(a, episodes=n) for a, n in zip(asked, counts, strict=True)], outcomes
            )
            found = [one.episodes for one in sampler.again(2, groups)]
            worth = sorted(
                (
                    -narrows(m, c) * (t.ppf(0.975, n - 1) / math.sqrt(n) - t.ppf(0.975, n) / math.sqrt(n + 1))
                    - bonus * math.sqrt(math.log(1 + sum(counts)) / n),
                    i,
                )
                for i, (m, c) in enumerate(outcomes)
                if m
                for n in range(counts[i], most)
            )
            best = [i for _, i in worth[: min(left, 6 * each)]]
            counts = [n + best.count(i) for i, n in enumerate(counts)]
            left -= len(best)
            assert found == counts
            if not best:
                break
            outcomes = [
                (m and n - (4 - m if i == 5 else 0), min(c + (n > 5), n))
                for i, ((m, c), n) in enumerate(zip(outcomes, counts, strict=True))
            ]
        assert left == 0 or all(n == most for n, (m, _) in zip(counts, outcomes, strict=True) if m)


@reference("sampler", "brorl", size=[8], least=[3], most=[6])
def brorl(make: Make, size: int = 256, least: int = 4, most: int = 512) -> None:
    assert "[1, 8] " in refused(make, least=1, most=8)
    assert "[9, 8] " in refused(make, least=9, most=8)
    assert make(SETUP, least=2, most=2).sizes == {2}
    sampler = make(SETUP)
    assert sampler.unbiased
    of_pool(make, sampler, size)
    assert sampler.sizes == {*range(least, most + 1)}
    known: dict[int, tuple[int, float, float]] = {}
    for _, asked, seen in updates(sampler, 2):
        visited(asked, known)
        told(known, seen)
    stored(sampler, make)
    for place, memory in enumerate(MEMORIES):
        counted = {i: memory[i % len(memory)] for i in range(size)}
        remembers(sampler, {i: one for i, one in counted.items() if one})
        asked = sampler.plan(place, 0, 6)
        failed = [1 - Fraction(c, n) for one in asked for n, c in [counted[one.index] or (2, 1)]]
        for one, share in zip(asked, failed, strict=True):
            exact = 24 * share / sum(failed) if sum(failed) else Fraction(0)
            assert one.episodes == max(least, min(most, round(exact))) or exact % 1 == Fraction(1, 2)
    drawn = [[one.index for one in sampler.plan(update, 0, 6)] for update in range(30)]
    assert len({i for one in drawn for i in one}) > (40 if size == 256 else 7)
