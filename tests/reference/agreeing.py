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


def ranks_kept(ranks: Sequence[float], top: int) -> list[float]:
    """The book: drop prompts where no reasoning brings the average rank of the least likely tokens into the top k."""
    return [float(best <= top) for best in ranks]


def orders_of_groups(name: str, part: Part, formula: Part) -> None:
    given = getattr(part, "keywords", {})
    drop, rank, top = given.get("drop", 0.25), given.get("rank", ""), given.get("top", 100)
    batch = turn_batch([[0.0]], signals={"r3_spread": [[1.0]], "r3_rank": [[1.0]]})
    for wrong in ({"drop": -0.1}, {"drop": 1.0}, {"top": 0}, {"top": -1}):
        refuses(lambda wrong=wrong: part(batch, batch.reward_BK, **wrong))
    assert part(batch, batch.reward_BK, rank="r3_rank", top=1).tolist() == [1.0]
    if not rank:
        LAWS["filter"](name, part, formula)
    for n in (1, 2, 3, 4, 5):
        for number, spreads in enumerate(product([0.0, 0.125, 0.5, 2.0][: 3 + (n < 5)], repeat=n)):
            group = [g for g in range(n) for _ in range(2)]
            turns = [[spreads[g]] * (1 + g % 2) for g in group]
            ranks = [
                [[1.0, top - 0.5, top, top + 0.5, 1e4][(number * 7 + g * g + 2 * g) % 5]] for g in range(n)
            ]
            of_turns = [[ranks[g][0]] * (1 + g % 2) for g in group]
            signals = {"r3_spread": turns, "r3_rank": of_turns}
            batch = turn_batch([[0.0] * len(row) for row in turns], group, signals=signals)
            near_enough = ranks_kept([row[0] for row in ranks], top) if rank else [1.0] * n
            left = [x for x, near in zip(spreads, near_enough, strict=True) if near]
            among = iter(spreads_kept(left, drop))
            assert part(batch, batch.reward_BK).tolist()[::2] == [
                next(among) if near else 0.0 for near in near_enough
            ]
    seven = [0.7, 0.1, 0.6, 0.2, 0.5, 0.3, 0.4]
    signals = {"r3_spread": [[x] for x in seven], "r3_rank": [[1.0]] * 7}
    batch = turn_batch([[0.0]] * 7, range(7), signals=signals)
    assert part(batch, batch.reward_BK).tolist() == spreads_kept(seven, drop)


@reference(
    "filter",
    "r3",
    law=orders_of_groups,
    drop=[0.0, 0.5],
    rank=["r3_rank"],
    top=[7],
    also=[{"rank": "r3_rank", "top": 3, "drop": 0.5}],
)
def r3(r: Ragged, A: Any, drop: float = 0.25, rank: str = "", top: int = 100) -> list[float]:
    every = sorted({*r.group})
    spread = [max(r.turns["r3_spread"][i][0] for i in range(len(r)) if r.group[i] == g) for g in every]
    kept_ = dict(zip(every, spreads_kept(spread, drop), strict=True))
    return [kept_[g] for g in r.group]
