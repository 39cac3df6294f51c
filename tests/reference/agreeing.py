"""Filters by labels and by how much reasoning matters: on random batches, and on all short episodes or orders of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import floor
from typing import Any

from law import LAWS
from plain import reference, refuses
from ragged import Ragged

from turnwise.trainers.kit.toy_batches import turn_batch

Part = Callable[..., Any]


def located(right: Sequence[bool]) -> int | None:
    """The first step that is not right; None where all are."""
    return next((k for k, one in enumerate(right) if not one), None)


def kept(before: Sequence[float], wrong: Sequence[float], earned: float, success: float) -> float:
    """The book: MC with hard labels, 1 if at least one completion succeeds; both must agree on the error's location.

    ``before`` are values of the states before each turn, so that a turn's own completions are those before the next one.
    """
    hard = [after > 0 for after in before[1:]] + [earned >= success - 1e-6]
    said = [one <= 0.5 for one in wrong]
    return float(located(hard[: len(wrong)]) == located(said))


def short_episodes(name: str, part: Part, formula: Part) -> None:
    LAWS["filter"](name, part, formula)
    success = getattr(part, "keywords", {}).get("success", 1.0)
    every = [
        (values, wrong, earned)
        for T in (1, 2, 3)
        for values in product([-0.5, 0.0, 0.25, 1.0], repeat=T)
        for wrong in product([0.0, 1.0] if T > 2 else [0.0, 0.5, 0.6, 1.0], repeat=T)
        for earned in (0.0, 0.25, success - 4e-6, success - 1e-6, 1.0)
    ]
    batch = turn_batch(
        [[*[0.0] * (len(wrong) - 1), earned] for _, wrong, earned in every],
        signals={"fork_value": [values for values, *_ in every], "wrong": [wrong for _, wrong, _ in every]},
    )
    expected = [kept(values, wrong, earned, success) for values, wrong, earned in every]
    assert part(batch, batch.reward_BK).tolist() == expected
    assert {*expected} == {0.0, 1.0}


@reference("filter", "consensus", law=short_episodes, success=[0.25])
def consensus(r: Ragged, A: Any, success: float = 1.0) -> list[float]:
    return [kept(r.turns["fork_value"][i], r.turns["wrong"][i], r.returns[i], success) for i in range(len(r))]


def spreads_kept(spreads: Sequence[float], drop: float) -> list[float]:
    """The book: rank by max σ, drop the low end; a group in which all σ are 0 is dropped. Ties share their fate, and no more than the share goes."""
    ranked = sorted(spreads)
    most = floor(drop * len(spreads))
    gone = {x for x in ranked if ranked.index(x) + ranked.count(x) <= most} | {0.0}
    return [float(x not in gone) for x in spreads]


def orders_of_groups(name: str, part: Part, formula: Part) -> None:
    LAWS["filter"](name, part, formula)
    drop = getattr(part, "keywords", {}).get("drop", 0.25)
    for n in (1, 2, 3, 4, 5):
        for spreads in product([0.0, 0.125, 0.5, 2.0][: 3 + (n < 5)], repeat=n):
            group = [g for g in range(n) for _ in range(2)]
            turns = [[spreads[g]] * (1 + g % 2) for g in group]
            batch = turn_batch([[0.0] * len(row) for row in turns], group, signals={"r3_spread": turns})
            assert part(batch, batch.reward_BK).tolist()[::2] == spreads_kept(spreads, drop)
    seven = [0.7, 0.1, 0.6, 0.2, 0.5, 0.3, 0.4]
    batch = turn_batch([[0.0]] * 7, range(7), signals={"r3_spread": [[x] for x in seven]})
    assert part(batch, batch.reward_BK).tolist() == spreads_kept(seven, drop)
    batch = turn_batch([[0.0]], signals={"r3_spread": [[1.0]]})
    for wrong in (-0.1, 1.0):
        refuses(lambda wrong=wrong: part(batch, batch.reward_BK, drop=wrong))


@reference("filter", "r3", law=orders_of_groups, drop=[0.0, 0.5])
def r3(r: Ragged, A: Any, drop: float = 0.25) -> list[float]:
    every = sorted({*r.group})
    spread = [max(r.turns["r3_spread"][i][0] for i in range(len(r)) if r.group[i] == g) for g in every]
    kept_ = dict(zip(every, spreads_kept(spread, drop), strict=True))
    return [kept_[g] for g in r.group]
