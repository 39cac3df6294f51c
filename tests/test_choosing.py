"""`make test` runs every cheap test, and of the dear ones what a budget is enough for: a changed part's own, what is near, and each in its turn."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import choosing
import pytest
import recording
from choosing import LAST, NEAR, Costs, Plan

ROOT = Path(__file__).parents[1]
LAW = [f"tests/a.py::law[{kind}-{number}]" for kind in ("loss", "credit") for number in range(20)]
SLOW = {f"tests/{file}.py::test_{number}": True for file in "bcde" for number in range(10)}
TESTS = {**dict.fromkeys(LAW, True), **SLOW, "tests/f.py::test_quick": False, "tests/f.py::test_grown": False}
COSTS = Costs(
    {"tests/f.py::test_grown": 2.0}, {"tests/f.py": 0.1, **{f"tests/{file}.py": 1.0 for file in "abcde"}}
)


def drawn(budget: float, seed: str = "1", weights: dict[str, float] | None = None, *parts: str) -> set[str]:
    return choosing.draw(TESTS, Plan(budget, seed, weights or {}, list(parts)), COSTS)


def test_what_is_cheap_runs_and_what_is_dear_is_within_the_budget() -> None:
    found = drawn(20.0)
    assert "tests/f.py::test_quick" in found
    assert 15 <= sum(map(COSTS.of, found)) <= 20
    assert drawn(0.0) == {"tests/f.py::test_quick"}
    assert drawn(1000.0) == set(TESTS)


def test_a_tenth_is_for_others_where_the_cheap_ones_cost_more_than_all() -> None:
    cheap = {f"tests/cheap.py::test_{number}": False for number in range(100)}
    costs = Costs({}, {**COSTS.files, "tests/cheap.py": 1.0})
    found = choosing.draw({**cheap, **SLOW}, Plan(50.0, "1", {}, []), costs)
    assert (len(found & cheap.keys()), len(found & SLOW.keys())) == (100, 5)


def test_of_cheap_ones_that_are_too_many_one_case_of_each_runs_and_the_others_in_their_turn() -> None:
    cases = {f"tests/cheap.py::test_{name}[{number}]": False for name in "ab" for number in range(40)}
    costs = Costs({}, {**COSTS.files, "tests/cheap.py": 1.0})
    every = [choosing.draw({**cases, **SLOW}, Plan(20.0, str(seed), {}, []), costs) for seed in range(60)]
    assert all(15 <= sum(map(costs.of, found)) <= 20 for found in every)
    assert all(any(f"_{name}[" in test for test in found) for found in every for name in "ab")
    assert set().union(*every) == {*cases, *SLOW}
    changed = Plan(20.0, "1", {}, ["a 7"])
    assert choosing.draw({**cases, "tests/p.py::law[a-7]": False}, changed, costs) >= {"tests/p.py::law[a-7]"}


def test_a_changed_part_s_own_tests_run_whatever_the_budget() -> None:
    tests = {f"tests/a.py::law[{part}-{number}]": True for part in ("clip", "clip_cov") for number in (1, 2)}
    plan = Plan(0.0, "1", {}, ["clip"])
    found = choosing.draw(
        {**tests, "tests/test_clip.py::test_it": True, "tests/b.py::test_it": True}, plan, COSTS
    )
    assert found >= {"tests/a.py::law[clip-1]", "tests/a.py::law[clip-2]", "tests/test_clip.py::test_it"}
    assert "tests/b.py::test_it" not in found


def test_what_the_last_commit_is_near_to_comes_first_and_then_what_any_change_is_near_to() -> None:
    found = drawn(25.0, "1", {"tests/b.py": LAST, "tests/c.py": NEAR})
    shares = [sum(test.startswith(f"tests/{file}") for test in found) for file in "bcd"]
    assert shares[0] == 10
    assert shares[1] > shares[2]


def test_each_has_its_turn_and_of_a_law_every_run_has_some() -> None:
    every = [drawn(20.0, str(seed)) for seed in range(120)]
    assert set().union(*every) == set(TESTS)
    assert all(found & set(LAW) for found in every)
    assert drawn(20.0, "1") == drawn(20.0, "1") != drawn(20.0, "2")


def test_a_cheap_test_has_its_turn_more_often_than_a_dear_one() -> None:
    costs = Costs({}, {"tests/b.py": 0.5, "tests/c.py": 8.0})
    counts = [0, 0]
    for seed in range(100):
        found = choosing.draw(SLOW, Plan(20.0, str(seed), {}, []), costs)
        counts[0] += sum(test.startswith("tests/b") for test in found)
        counts[1] += sum(test.startswith("tests/c") for test in found)
    assert counts[0] > 2 * counts[1] > 0


class Item(NamedTuple):
    """What is asked of a test."""

    nodeid: str
    slow: bool

    def get_closest_marker(self, name: str) -> bool | None:
        return self.slow if name == "slow" and self.slow else None


def left(options: dict[str, Any], told: Any, items: list[Item]) -> list[str]:
    gone: list[Item] = []
    config = SimpleNamespace(
        workerinput={"plan": told},
        getoption=options.get,
        hook=SimpleNamespace(pytest_deselected=lambda items: gone.extend(items)),
    )
    before = set(items)
    choosing.choose(config, items, lambda item: item.nodeid.partition("::")[0])  # pyright: ignore[reportArgumentType]
    assert {*items, *gone} == before
    return [item.nodeid for item in items]


def test_workers_leave_out_what_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "costs", lambda: COSTS)
    items = [Item("tests/b.py::test_1@group", True), Item("tests/b.py::test_2", False)]
    assert left({"half": ""}, None, [*items]) == [item.nodeid for item in items]
    assert left({"half": ""}, (0.0, "1", {}, []), [*items]) == ["tests/b.py::test_2"]
    assert left({"half": ""}, (0.0, "1", {}, ["b"]), [Item("tests/test_b.py::test_1", True)])


def test_the_halves_are_the_whole_and_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "costs", lambda: COSTS)
    items = [Item(test, slow) for test, slow in TESTS.items()]
    halves = [left({"half": half}, None, [*items]) for half in "12"]
    assert sorted(halves[0] + halves[1]) == sorted(TESTS)
    spent = [sum(map(COSTS.of, half)) for half in halves]
    assert min(spent) > 0.6 * max(spent)


def test_everything_runs_where_the_changes_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(row: dict[str, str], budget: float = 100.0) -> Any:
        (tmp_path / "tests.json").write_text(json.dumps(row))
        monkeypatch.setattr(choosing, "RECORD", tmp_path / "tests.json")
        return choosing.plan.__wrapped__(budget)

    assert found({}) is None
    assert found({"commit": "0" * 40}) is None  # as in a clone without history
    assert found({"commit": "HEAD"}, budget=0.0) is None


def tree() -> Any:
    return SimpleNamespace(
        texts=dict.fromkeys(["tests/test_near.py", "tests/test_far.py", "tests/test_tree.py", "envs/shop/env.py"], ""),
        nearest_tests=lambda changed: {"tests/test_near.py"},
        kinds={"loss": {"trainers/check/loss.py", "trainers/lab/loss/clip.py"}},
        requirements={"trainers/check/loss.py"},
        families={"envs/shop/env.py", "envs/sort.py"},
    )  # fmt: skip


def test_near_is_what_uses_a_change_first_or_is_called_after_it() -> None:
    assert choosing.near(tree(), ["trainers/strategy/tree.py"]) == [
        "tests/test_near.py",
        "tests/test_tree.py",
    ]


def test_parts_are_components_recipes_and_environments() -> None:
    changed = [
        "trainers/lab/loss/clip.py",
        "trainers/check/loss.py",
        "envs/shop/goods.py",
        "envs/sort.py",
        "agents/log.py",
    ]
    assert choosing.parts_of(tree(), changed) == ["clip", "shop", "sort"]
    assert choosing.parts_of(tree(), ["trainers/recipe/presets/shop-quick.yaml", "docs/figures.yaml"]) == [
        "shop-quick"
    ]


def test_what_tests_cost_is_kept_of_those_that_did_not_run() -> None:
    here = "tests/test_choosing.py::"
    known = Costs({f"{here}a": 9.0, f"{here}b": 9.0, "tests/gone.py::c": 9.0}, {"tests/test_docs.py": 0.1})
    found = recording.costs_after(known, {f"{here}a": 1.23, f"{here}d": 0.1, f"{here}e": 0.3})
    assert found.tests == {f"{here}a": 1.2, f"{here}b": 9.0}
    assert found.files == {"tests/test_docs.py": 0.1, "tests/test_choosing.py": 0.2}
