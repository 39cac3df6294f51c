"""The planner of mixtures finds the top of the surface that scores were made of."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from turnwise.errors import TurnwiseError
from turnwise.trainers.lab.mixture_plan import ScoredMixture, planned, read


def surface(seed: int, suites: str) -> dict[str, float]:
    """A product's weight by its letters; the squares' are below 0, so that the top is within."""
    rng = Random(seed)
    found = {a + b: rng.uniform(-0.3, 0.3) for a, b in itertools.combinations(suites, 2)}
    return {
        **found,
        **{a: rng.uniform(0, 0.4) for a in suites},
        **{a + a: rng.uniform(-1.5, -1) for a in suites},
    }


def height(form: dict[str, float], shares: dict[str, float]) -> float:
    return sum(x * shares[name[0]] * (shares[name[1]] if len(name) > 1 else 1) for name, x in form.items())


def grid(suites: str, steps: int) -> list[dict[str, float]]:
    counts = (c for c in itertools.product(range(steps + 1), repeat=len(suites)) if sum(c) == steps)
    return [{name: n / steps for name, n in zip(suites, one, strict=True)} for one in counts]


@pytest.mark.parametrize(("suites", "fine"), [("a", 1), ("ab", 200), ("abc", 60), ("abcde", 12)])
def test_the_plan_is_the_top_of_the_surface(suites: str, fine: int) -> None:
    for seed in range(3):
        form = surface(seed, suites)
        rng = Random(seed)
        drawn = [{name: rng.uniform(0.05, 3) for name in suites} for _ in range(30)] + [{"a": 2.0}]
        runs = [
            ScoredMixture(w, height(form, {name: w.get(name, 0) / sum(w.values()) for name in suites}))
            for w in drawn
        ]
        if suites == "a":
            with pytest.raises(TurnwiseError, match="no two runs of different mixtures"):
                planned(runs)
            continue
        plan = planned(runs)
        assert sum(plan.shares.values()) == pytest.approx(1)
        assert min(plan.shares.values()) >= 0
        assert plan.score == pytest.approx(height(form, dict(plan.shares)), abs=1e-9)
        assert plan.score >= max(height(form, one) for one in grid(suites, fine)) - 1e-9


def test_few_runs_are_fitted_with_a_ridge() -> None:
    plan = planned([ScoredMixture({"a": 1}, 0.2), ScoredMixture({"b": 1}, 0.6), ScoredMixture({"c": 1}, 0.3)])
    assert max(plan.shares, key=plan.shares.__getitem__) == "b"
    assert 0.5 < plan.score < 0.7


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    for wrong in (
        "",
        "[1]",
        '{"weights": 1}',
        '[{"weights": {"a": "x"}, "score": 1}]',
        '[{"weights": {"a": 1}}]',
    ):
        (tmp_path / "table.json").write_text(wrong)
        with pytest.raises(TurnwiseError, match="is no table of scored mixtures"):
            read(tmp_path / "table.json")
    for below in ({"a": -1.0, "b": 2.0}, {"a": 0.0}):
        with pytest.raises(TurnwiseError, match="below 0, or all 0"):
            planned([ScoredMixture(below, 0.1), ScoredMixture({"a": 1, "b": 1}, 0.2)])


def test_the_plan_is_written_as_a_recipe_has_it(tmp_path: Path) -> None:
    rows = [
        {"weights": {"a": w, "b": 1 - w}, "score": y}
        for w, y in [(0, 0.4), (0.25, 0.47), (0.5, 0.5), (0.75, 0.49), (1, 0.44)]
    ]
    (tmp_path / "table.json").write_text(json.dumps(rows))
    command = [sys.executable, "-m", "turnwise.trainers.lab.mixture_plan", str(tmp_path / "table.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "suite: {a: 0.5625, b: 0.4375}  # a score of 0.5012 by the fit\n"
