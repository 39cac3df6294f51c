"""The safety gate passes at most δ of the policies that do more harm than they may."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, t

from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.by_hand import episode, groups, logged, turn
from turnwise.trainers.audit.logs.safety import safety, upper
from turnwise.trainers.audit.registry import audit_all


def chance_to_pass(n: int, harm: float, bound: str, *, limit: float = 0.05, delta: float = 0.1) -> float:
    """Over all counts of harm that n tasks may show."""
    passing = [k for k in range(n + 1) if upper([1.0] * k + [0.0] * (n - k), delta, bound) <= limit]
    return float(sum(binom.pmf(k, n, harm) for k in passing))


@pytest.mark.parametrize("n", [60, 200])
def test_of_unsafe_policies_at_most_delta_pass(n: int) -> None:
    unsafe = [chance_to_pass(n, harm, "exact") for harm in (0.0501, 0.06, 0.1)]
    assert max(unsafe) == unsafe[0] <= 0.1
    assert chance_to_pass(n, 0.0501, "t") > 0.1, "theirs rests on many costs that are not rare"
    assert chance_to_pass(n, 0.0, "exact") == 1.0


@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_holds_for_costs_of_any_size(seed: int) -> None:
    """Tasks whose costs are mostly 0 and seldom large, of a mean just above the limit."""
    rng = np.random.default_rng(seed)
    costs = (rng.random((300, 50)) < 0.25) * rng.choice([0.5, 1.0], (300, 50)) * (0.2001 / 0.1875)
    assert sum(upper([*np.minimum(row, 1.0)], 0.1, "exact") <= 0.2 for row in costs) <= 30
    sample = [*rng.normal(0.3, 0.2, 20)]
    half = t.ppf(0.9, 19) * np.std(sample, ddof=1) / 20**0.5
    assert upper(sample, 0.1, "t") == pytest.approx(np.mean(sample) + half)


def test_episodes_of_a_task_count_once_and_the_exit_code_is_that_of_the_gate() -> None:
    rng = Random(0)
    log = groups({f"t{n}": "".join(rng.choice("01") for _ in range(6)) for n in range(20)})
    found = safety(log, cost="failure", limit=0.9)
    assert found.value("tasks") == 20
    assert found.data == {"passed": True}
    refused = audit_all("log", log, ["log"], measures=["safety"], options={"cost": "failure", "limit": "0.3"})
    [why] = refused.failures
    assert why.startswith("not passed, keep the policy before: a cost of at most")


def test_costs_are_what_was_done_taken_away_or_scored() -> None:
    bad = turn(parts={"outcome": 1.0, "harm": -0.5}, signals={"wrong": 1.0})
    fine = turn(signals={"wrong": 0.25})
    log = logged({str(n): [episode([bad, fine], solved=True, task=str(n))] for n in range(3)})
    told = {
        cost: safety(log, cost=cost, fold="max").value("cost")
        for cost in ("failure", "bad_action", "harm", "wrong")
    }
    assert told == {"failure": 0.0, "bad_action": 0.0, "harm": 0.5, "wrong": 1.0}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, "No cost of the episodes"),
        ({"cost": "failure", "delta": 1.5}, "delta is 1.5"),
        ({"cost": "failure", "bound": "best"}, "best"),
        ({"cost": "return"}, "are not between 0 and 1"),
        ({"cost": "harmful"}, "no signal 'harmful'"),
    ],
)
def test_a_gate_that_cannot_be_kept_says_why(asked: dict[str, Any], why: str) -> None:
    log = logged({"a": [episode([turn(reward=-2.0)], solved=True)]})
    with pytest.raises(TurnwiseError, match=why):
        safety(log, **asked)
