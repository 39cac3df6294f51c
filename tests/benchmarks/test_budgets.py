"""Budgets of episodes beside an oracle's: whoever knows more plans no worse, and what is planned is the same number."""

import runpy
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "learning" / "budgets.py"


def test_no_plan_is_worth_more_than_the_oracle_s_and_all_play_as_many_episodes():
    program = runpy.run_path(str(PROGRAM))
    earlier = [1.0] * 8 + [0.0] * 8  # misleads whoever saw eight
    tasks = [program["Played"](p, earlier[:16]) for p in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)]
    plans = program["plans"](tasks, 8)
    assert {sum(counts) for counts in plans.values()} == {48}
    found = {row.knows: row for row in program["rows"](tasks, 4, 8, 50)}
    assert all(row.worth_high <= 1 + 1e-9 for row in found.values())
    assert found[program["ORACLE"]].worth == pytest.approx(1)
    assert found["8 earlier episodes"].worth < found[program["ORACLE"]].worth
    assert program["worth"]([2, 1], [program["Played"](0.5, ()), program["Played"](0.5, ())]) == 0.0625
