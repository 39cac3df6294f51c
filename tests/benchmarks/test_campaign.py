"""Campaigns: cells that are killed go on, a spent budget stops them, and what was not run says so."""

from __future__ import annotations

import importlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from turnwise import registry
from turnwise.agents.evaluation.statistics import Estimate, Interval
from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.candidates import (
    Candidate,
    CandidateEvaluation,
    Contender,
    Measure,
    Validation,
)
from turnwise.trainers.view.campaign import campaign_shown
from turnwise.trainers.view.places import ViewedPlace

LEARNING = Path(__file__).parents[2] / "benchmarks" / "learning"
TINY: dict[str, Any] = {
    "about": "Two rules on a model that is too small for anything.",
    "settings": {
        "tiny": {
            "recipe": "shop-quick",
            "base": "grpo",
            "changes": {
                "suite": "calc/easy",
                "device": "cpu",
                "engine": {"kind": "torch", "max_sequences": 16},
                "model": {
                    "scratch": {
                        "init": "random",
                        "layers": 1,
                        "width": 64,
                        "heads": 2,
                        "vocab_size": 300,
                        "context": 512,
                        "text_episodes": 10,
                    }
                },
                "warm_start": {"episodes": 16, "batch_size": 8},
                "sampling": {"max_tokens": 10, "tools": "none"},
                "rollout": {"groups": 2, "group_size": 2, "concurrency": 16, "max_vacuous": 0},
                "filter": "any",
                "updates": 2,
                "evaluate": {"every": 1, "dev": 2, "test": 2},
                "checkpoint": {"every": 1},
            },
        }
    },
    "methods": {"grpo": {"credit": "grpo"}, "return_to_go": {"credit": "return_to_go"}},
    "screen": {"seeds": [0]},
    "confirm": {"seeds": [0, 1], "top": 1},
}


@pytest.fixture(scope="module")
def part() -> Iterator[Callable[[str], Any]]:
    """``part("table")`` is the module of that name."""
    sys.path.insert(0, str(LEARNING))
    try:
        yield lambda name: importlib.import_module(f"campaigning.{name}")
    finally:
        sys.path.remove(str(LEARNING))


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return tmp_path / "tiny.yaml"


def command(plan: Path, stage: str, *more: str) -> list[str]:
    where = ["--cells", str(plan.parent / "cells"), "--runs", str(plan.parent / "runs")]
    script = str(LEARNING / "campaign.py")
    return [sys.executable, script, stage, str(plan), *where, "--into", str(plan.parent / "report"), *more]


@pytest.mark.parametrize("file", sorted((LEARNING / "plans").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_method_of_every_plan_is_a_recipe(part: Callable[[str], Any], file: Path) -> None:
    pytest.importorskip("torch")
    from turnwise.trainers.recipe.load import load_recipe

    before = {**registry._components}
    try:
        plan = part("plan").read_plan(file)
        for setting in plan.settings:
            for method in plan.methods_of(setting):
                asked = part("plan").asked_of(plan, part("plan").Cell(setting, method, 0))
                load_recipe(asked["recipe"], asked["changes"])
    finally:  # parts of the plan's own (imports); other tests go over all there are
        for key in [
            k for k, entry in registry._components.items() if k not in before and str(LEARNING) in entry.file
        ]:
            del registry._components[key]


def write_result(
    part: Any, plan_file: Path, method: str, seed: int, successes: int, failed: str = ""
) -> None:
    """The result of a cell that solves the first so many of 40 tasks."""
    plan = part("plan").read_plan(plan_file)
    cell = part("plan").Cell("tiny", method, seed)

    def row(name: str, solved: int) -> dict[str, Any]:
        low, high = max(0.0, solved / 40 - 0.1), min(1.0, solved / 40 + 0.1)
        return {
            "name": name,
            "mode": "sampled",
            "suite": "no/suite",
            "split": "test",
            "success": solved / 40,
            "success_interval": [low, high],
            "mean_score": 0.5,
            "turns": 3.0,
            "episodes": 40,
            "tasks": 40,
            "outcomes": {"ok": 40},
            "results": {f"task-{i}": str(int(i < solved)) for i in range(40)},
        }

    data = {
        "setting": "tiny",
        "method": method,
        "seed": seed,
        "plan": plan.hash,
        "asked": part("plan").asked_of(plan, cell),
        "failed": failed,
        "evaluations": [] if failed else [row("warm start", 4), row("after RL", successes)],
        "curve": []
        if failed
        else [{"update": 3, "steps": 30, "tokens": 300, "success": successes / 40, "interval": [0.0, 1.0]}],
        "recipe": {"suite": "no/suite", "evaluate": {"dev": 40}},
        "machine": {"cpu": "abacus", "cores": 2},
        "sessions": [
            {
                "commit": "abc",
                "load_before": [0.5, 1, 1],
                "load_during": {"mean": 1.5, "max": 2, "samples": 3},
                **({} if seed else {"cpu_seconds": 700.0}),  # a session that was killed knows none
            }
        ],
        "machine_hours": 0.5,
    }
    path = cell.file(plan_file.parent / "cells")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


def test_a_plans_hash_is_of_what_is_tried_and_not_of_the_words_about_it(part: Callable[[str], Any]) -> None:
    plan = part("plan").read_plan(LEARNING / "plans" / "credit-arena.yaml")
    said, more = (plan.model_copy(update=change) for change in ({"about": "x"}, {"area_steps": 1}))
    assert plan.hash == said.hash != more.hash


def report(part: Any, plan_file: Path) -> str:
    plan = part("plan").read_plan(plan_file)
    return part("table").write_report(plan, "tiny", plan_file.parent / "cells", plan_file.parent / "report")


@pytest.mark.parametrize("methods", [["grpo"], ["grpo", "return_to_go"]], ids=["alone", "compared"])
def test_figures_of_several_suites_are_told_apart(part, plan_file, methods):
    for method in methods:
        write_result(part, plan_file, method, 0, 18)
        path = plan_file.parent / "cells" / "tiny" / method / "0.json"
        data = json.loads(path.read_text())
        harder = [
            {**row, "suite": "hard/suite", "success": 0.0, "results": {}} for row in data["evaluations"]
        ]
        path.write_text(json.dumps(data | {"evaluations": data["evaluations"] + harder}))
    text = report(part, plan_file).partition("**Confirmed**")[0]
    if len(methods) > 1:
        assert "no/suite sampled: before" in text
        assert "hard/suite sampled: before" in text
    else:
        assert "no/suite sampled 10.0 % → 45.0 %, hard/suite sampled 0.0 % → 0.0 %" in text


def test_what_was_not_run_says_so(part, plan_file):
    text = report(part, plan_file)
    assert "| `return_to_go` | not run |" in text
    assert "No cell of tiny was run." in text
    states = json.loads((plan_file.parent / "report.json").read_text())["settings"]["tiny"]["screen"][
        "states"
    ]
    assert states == {"grpo": ["not run"], "return_to_go": ["not run"]}


@pytest.mark.parametrize(
    ("solved", "confirmed", "why"),
    [
        (20, True, "not excluded to be better than grpo"),
        (8, False, "excluded to be better than grpo"),
    ],
)
def test_the_screen_leaves_what_is_not_excluded_to_be_better(part, plan_file, solved, confirmed, why):
    write_result(part, plan_file, "grpo", 0, 19)
    write_result(part, plan_file, "return_to_go", 0, solved)
    plan = part("plan").read_plan(plan_file)
    base, other = part("table").choices(plan, "tiny", plan_file.parent / "cells")
    assert base == ("grpo", True, "the base")
    assert other.confirmed == confirmed
    assert other.why.startswith(why)


def test_the_best_so_many_are_confirmed(part, plan_file):
    plan = TINY | {"methods": {**TINY["methods"], "gigpo": {"credit": "gigpo"}}}
    plan_file.write_text(yaml.safe_dump(plan))
    for method, solved in (("grpo", 19), ("return_to_go", 20), ("gigpo", 24)):
        write_result(part, plan_file, method, 0, solved)
    chosen = part("table").choices(part("plan").read_plan(plan_file), "tiny", plan_file.parent / "cells")
    assert {c.method: c.confirmed for c in chosen} == {"grpo": True, "return_to_go": False, "gigpo": True}


def test_what_the_plan_asks_for_is_confirmed_whatever_came_of_it(part, plan_file):
    asked = {"confirm": {"seeds": [0, 1], "top": 0, "also": ["return_to_go"]}}
    plan = TINY | asked | {"methods": {**TINY["methods"], "gigpo": {"credit": "gigpo"}}}
    plan_file.write_text(yaml.safe_dump(plan))
    for method, solved in (("grpo", 19), ("return_to_go", 2), ("gigpo", 24)):
        write_result(part, plan_file, method, 0, solved)
    chosen = part("table").choices(part("plan").read_plan(plan_file), "tiny", plan_file.parent / "cells")
    assert {c.method: c.confirmed for c in chosen} == {"grpo": True, "return_to_go": True, "gigpo": False}
    plan_file.write_text(yaml.safe_dump(plan | {"confirm": {"also": ["nobody"]}}))
    with pytest.raises(TurnwiseError, match=r"confirm\.also names the method 'nobody'"):
        part("plan").read_plan(plan_file)


@pytest.mark.slow
def test_confirmed_methods_are_compared_over_equal_seeds(part, plan_file):
    for seed in (0, 1):
        write_result(part, plan_file, "grpo", seed, 18 + seed)
    write_result(part, plan_file, "return_to_go", 0, 25)
    text = report(part, plan_file)
    assert "not run" in text.partition("**Confirmed**")[2]
    write_result(part, plan_file, "return_to_go", 1, 28)
    text = report(part, plan_file)
    confirmed = text.partition("**Confirmed**")[2]
    assert "intervals over seeds" in confirmed
    assert "paired t test" in confirmed
    assert "not run" not in confirmed
    assert "dev at 30 steps" in text
    assert (
        "4 cells in 4 sessions, 2.00 machine-hours (1,400 CPU-seconds in 2 of the sessions) on abacus, 2 cores; load before 0.5"
        in text
    )
    now = part("plan").read_plan(plan_file).hash
    assert f"; plan `{now}`, now `{now}`." in text
    assert (plan_file.parent / "report-tiny.svg").exists()


def test_a_run_that_failed_is_not_left_out_in_silence(part, plan_file):
    write_result(part, plan_file, "grpo", 0, 19)
    write_result(part, plan_file, "return_to_go", 0, 0, failed="the loss is not finite.")
    text = report(part, plan_file)
    assert "| `return_to_go` | seed 0: failed: the loss is not finite" in text
    told = "seed 0: sampled 10.0 % → 47.5 % (30.0 min)"  # there is nothing to compare it with
    assert told in text
    shown = campaign_shown(ViewedPlace("0", "campaign", plan_file.parent / "report.json", "report"))
    assert [method.alone for method in shown.settings[0].stages[0].methods] == [told, ""]


ASKING = {
    "metrics": {"dev_success": ["fall"], "kl_old": ["mean", "sum"]},
    "after": {"pass_at": 8, "tasks": 40, "demonstrations": 5},
}


@pytest.mark.slow
def test_what_else_a_plan_asks_is_told_and_an_older_cell_is_accepted(part, plan_file):
    plan_file.write_text(yaml.safe_dump(TINY | ASKING))
    write_result(part, plan_file, "grpo", 0, 19)  # older than the questions
    write_result(part, plan_file, "return_to_go", 0, 20)
    file = plan_file.parent / "cells" / "tiny" / "return_to_go" / "0.json"
    asked = {"pass_at": 8, "tasks": 40, "demonstrations": 5, "demonstrator": "demonstrator"}
    answered = {
        "pass_at": {"k": 8, "tasks": 40, "success": 0.3, "pass_at_k": 0.725},
        "entropy_by_turn": [[0.5, 40], [0.25, 39]],
        "nll": {"before": 0.125, "after": 0.5, "tokens": 900, "episodes": 5},
    }
    kept = {"kl_old": [[1, 0.25], [2, 0.75]], "dev_success": [[1, 0.5], [2, 0.125]]}
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "metrics": kept, "after": {"asked": asked, "found": answered}}))
    text = report(part, plan_file)
    heads = "dev_success, fall | kl_old, mean | kl_old, sum | pass@8 on dev | entropy by turn"
    assert f"| method | {heads} | nll of demonstrations, before | nll of demonstrations, after |" in text
    assert "| `return_to_go` | 0.375 | 0.5 | 1 | 72.5 % | 1: 0.500, 2: 0.250 | 0.125 | 0.5 |" in text
    assert f"| `grpo` | {' | '.join(['not recorded'] * 7)} |" in text
    plan_file.write_text(yaml.safe_dump(TINY | {"after": {"pass_at": 4, "tasks": 40}}))
    text = report(part, plan_file)  # the answer to another question is no answer to this one
    assert "| `return_to_go` | not recorded | not recorded |" in text


@pytest.mark.slow
def test_verdicts_on_own_attempts_are_told_over_all_that_were_asked(part, plan_file):
    plan_file.write_text(yaml.safe_dump(TINY | {"after": {"verdicts": 40}}))
    asked = part("plan").read_plan(plan_file).after.model_dump(mode="json")
    for method, before, after in (
        (
            "grpo",
            {"asked": 20, "right": 0.5, "unanswered": 0.1},
            {"asked": 40, "right": 0.75, "unanswered": 0.0},
        ),
        ("return_to_go", {"asked": 0, "right": 0.0, "unanswered": 0.0}, None),
    ):
        write_result(part, plan_file, method, 0, 19)
        file = plan_file.parent / "cells" / "tiny" / method / "0.json"
        found = {"verdicts": {name: one for name, one in (("before", before), ("after", after)) if one}}
        file.write_text(
            json.dumps({**json.loads(file.read_text()), "after": {"asked": asked, "found": found}})
        )
    text = report(part, plan_file)
    assert "| `grpo` | 50.0 % right of 20, 10.0 % unanswered | 75.0 % right of 40 |" in text
    assert "| `return_to_go` | none could be asked | not recorded |" in text


def test_methods_of_other_suites_are_compared_on_what_the_base_was_evaluated_on_too(part):
    """Their curves are of their own suite, and one that shares nothing with the base stands for itself."""

    def side(label: str, *suites: str) -> Contender:
        share = Estimate(0.5, Interval(0.4, 0.6), 10, 10)
        found = [CandidateEvaluation(Measure(s, "test", "greedy"), share, 0.5, 4.0, {}, {}) for s in suites]
        curve = (Validation(1, 9.0, 99.0, 0.5, None),)
        one = Candidate(label, tuple(found), 0, curve, Measure(suites[0], "dev", "sampled"))
        return Contender(label, (one,))

    sides = [side("alone", "shop"), side("same", "shop"), side("pair", "pair", "shop"), side("other", "pair")]
    kept = part("table")._alike(sides)
    assert [(one.label, len(one.members[0].curve)) for one in kept] == [
        ("alone", 1),
        ("same", 1),
        ("pair", 0),
    ]


def test_a_metric_of_another_setting_has_no_column(part, plan_file):
    two = {"settings": {**TINY["settings"], "other": TINY["settings"]["tiny"]}}
    plan_file.write_text(yaml.safe_dump(TINY | two | {"metrics": {"entropy": ["last"], "pool": ["last"]}}))
    plan = part("plan").read_plan(plan_file)
    rows = {"grpo": [{"failed": "", "metrics": {"entropy": [[1, 0.5]], "pool": []}}], "return_to_go": [None]}
    assert part("told").told(plan, rows) == [{"method": "`grpo`", "entropy, last": "0.5"}]


def test_a_question_that_a_plan_does_not_ask_changes_neither_its_hash_nor_older_cells(part):
    after = part("plan").After
    assert after(pass_at=8).model_dump(mode="json").keys() == {
        "pass_at",
        "tasks",
        "demonstrations",
        "demonstrator",
    }
    assert after(verdicts=3).model_dump(mode="json")["verdicts"] == 3


def test_the_area_under_the_curve_of_dev_success_is_taken_over_the_same_steps(part):
    ends = {"name": "before", "mode": "sampled"}
    data = {
        "evaluations": [{**ends, "suite": "a", "success": 0.2}, {**ends, "suite": "b", "success": 0.0}],
        "recipe": {"suite": {"a": 3, "b": 1}},
        "curve": [{"steps": 100.0, "success": 0.35}, {"steps": 300.0, "success": 0.55}],
    }
    area = part("told").area
    assert area(data, 100) == pytest.approx(0.25)  # from (3·0.2 + 0)/4 to 0.35
    assert area(data, 200) == pytest.approx((100 * 0.25 + 100 * 0.4) / 200)
    assert area(data, 301) is None


def timed(part: Any, plan_file: Path, seconds: dict[str, list[float | None]]) -> str:
    """A report on cells that validated after so many seconds."""
    for method, times in seconds.items():
        write_result(part, plan_file, method, 0, 20)
        file = plan_file.parent / "cells" / "tiny" / method / "0.json"
        data = json.loads(file.read_text())
        (point,) = data["curve"]
        data["curve"] = [
            {**point, "update": 3 + n, "steps": 30 + n, "success": 0.25 * n, "seconds": time}
            for n, time in enumerate(times)
        ]
        file.write_text(json.dumps(data))
    return report(part, plan_file)


def test_methods_are_compared_at_equal_wall_time_where_the_plan_says_so(part, plan_file):
    plan_file.write_text(yaml.safe_dump(TINY | {"wall_time": True}))
    seconds: dict[str, list[float | None]] = {"grpo": [10.0, 20.0, 30.0], "return_to_go": [5.0, 10.0, 15.0]}
    text = timed(part, plan_file, seconds)
    assert "dev at 5 updates | dev at 32 steps | dev at 300 tokens | dev at 15 seconds |" in text
    screened = text.partition("**Confirmed**")[0].splitlines()
    rows = {line.split("|")[1].strip(): line.split("|")[-2] for line in screened if line.startswith("| `")}
    assert rows["`grpo`"].startswith(" 0.0 %"), "its validation after 10 s is the last within 15"
    assert rows["`return_to_go`"].startswith(" 50.0 %")
    assert ">seconds<" in (plan_file.parent / "report-tiny.svg").read_text()
    assert "starts, warm starts and the time between two sessions are left out" in text


@pytest.mark.parametrize("wall_time", [False, True])
def test_seconds_that_are_not_asked_for_or_not_known_are_not_compared(part, plan_file, wall_time):
    plan_file.write_text(yaml.safe_dump(TINY | {"wall_time": wall_time}))
    seconds: dict[str, list[float | None]] = {"grpo": [10.0], "return_to_go": [None if wall_time else 5.0]}
    text = timed(part, plan_file, seconds)
    assert "dev at 3 updates" in text
    assert "seconds |" not in text
    assert ("1 runs did not count their seconds" in text) == wall_time


def test_a_method_s_place_is_part_of_what_its_cells_answer(part, plan_file):
    write_result(part, plan_file, "grpo", 0, 19)
    write_result(part, plan_file, "return_to_go", 0, 20)
    plan_file.write_text(yaml.safe_dump(TINY | {"placement": {"grpo": "local:engines=2"}}))
    with pytest.raises(TurnwiseError, match=r"grpo/0\.json was made with another placement than"):
        report(part, plan_file)
    write_result(part, plan_file, "grpo", 0, 19)
    assert "`grpo` runs on `local:engines=2`." in report(part, plan_file)


def test_a_plan_without_such_questions_has_no_second_table(part, plan_file):
    write_result(part, plan_file, "grpo", 0, 19)
    text = report(part, plan_file)
    assert "not recorded" not in text
    assert text.count("| method |") == 2  # screened and confirmed


def test_a_plan_cannot_tell_a_metric_in_a_way_that_there_is_not(part, plan_file):
    plan_file.write_text(yaml.safe_dump(TINY | {"metrics": {"kl_old": ["middle"]}}))
    with pytest.raises(TurnwiseError, match=r"metrics\.kl_old\.0"):
        part("plan").read_plan(plan_file)


def test_a_result_of_another_question_is_refused(part, plan_file):
    write_result(part, plan_file, "grpo", 0, 19)
    changed = yaml.safe_load(plan_file.read_text())
    changed["settings"]["tiny"]["changes"]["updates"] = 3
    plan_file.write_text(yaml.safe_dump(changed))
    with pytest.raises(TurnwiseError, match="made with another changes than the plan has now"):
        report(part, plan_file)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": {"tiny": {"recipe": "shop-quick", "base": "grop"}}}, "names the method 'grop'"),
        ({"budget": 3}, "budget: Extra inputs are not permitted"),
        ({"methods": {"grpo": {}, "start": {}}}, "may be called 'start'"),
        ({"placement": {"grpo": "moon:engines=2"}}, "placement: .*grpo: --on 'moon:engines=2' is no place"),
        ({"placement": {"grop": "local:engines=2"}}, "placement names the method 'grop'"),
    ],
)
def test_mistakes_in_a_plan_are_named(part, plan_file, change, words):
    plan_file.write_text(yaml.safe_dump(TINY | change))
    with pytest.raises(TurnwiseError, match=words):
        part("plan").read_plan(plan_file)


def test_a_common_start_replaces_the_model_and_the_warm_start(part, plan_file):
    tiny = TINY["settings"]["tiny"] | {"shared_start": True}
    plan_file.write_text(yaml.safe_dump(TINY | {"settings": {"tiny": tiny}}))
    plan, cell = part("plan").read_plan(plan_file), part("plan").Cell("tiny", "return_to_go", 1)
    changed = part("plan").overrides_of(plan, cell, plan_file.parent)
    assert changed["model"] == {"path": str(plan_file.parent / "tiny/start-0/checkpoints/step-000000/model")}
    assert (changed["warm_start"], changed["credit"], changed["seed"]) == (None, "return_to_go", 1)
    start = part("plan").overrides_of(plan, part("plan").Cell("tiny", "start", 0), plan_file.parent)
    assert (start["updates"], start["seed"], "scratch" in start["model"]) == (0, 0, True)


@pytest.mark.slow
@pytest.mark.full
def test_a_start_whose_result_is_committed_is_made_again_where_its_model_is_not(plan_file):
    tiny = TINY["settings"]["tiny"] | {"shared_start": True}
    plan_file.write_text(yaml.safe_dump(TINY | {"settings": {"tiny": tiny}}))
    subprocess.run(command(plan_file, "screen"), check=True, capture_output=True)
    cells = plan_file.parent / "cells" / "tiny"
    results = {path: path.read_text() for path in cells.rglob("*.json")}
    assert len(results) == 3
    shutil.rmtree(plan_file.parent / "runs")  # as in a new checkout
    (cells / "grpo" / "0.json").unlink()
    done = subprocess.run(command(plan_file, "screen"), check=True, capture_output=True, text=True)
    assert [line.partition(" after")[0] for line in done.stdout.splitlines()] == [
        "tiny/start/0: done",
        "tiny/grpo/0: done",
    ]
    again = {path: path.read_text() for path in cells.rglob("*.json")}
    assert {path for path in again if again[path] != results[path]} == {cells / "grpo" / "0.json"}


@pytest.mark.slow
def test_a_plan_whose_recipe_is_refused_stops_and_commits_nothing(plan_file):
    wrong = yaml.safe_load(plan_file.read_text())
    wrong["methods"]["grpo"]["credit"] = "grop"
    plan_file.write_text(yaml.safe_dump(wrong))
    done = subprocess.run(command(plan_file, "screen"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "The recipe of tiny/grpo/0 is refused: " in done.stderr
    assert "grop" in done.stderr
    assert not (plan_file.parent / "cells").exists()


def wait_for(path: Path, process: subprocess.Popen[bytes], marks: str) -> None:
    """Until this text stands in a file that the process writes."""
    while not (path.exists() and marks in path.read_text()):
        assert process.poll() is None, "it ended before"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_campaign_that_is_killed_goes_on_where_it_was(part, plan_file):
    folder = plan_file.parent / "runs" / "tiny" / "grpo-0"
    after = {"pass_at": 2, "tasks": 3, "demonstrations": 4, "demonstrator": "gold"}
    asking = {"metrics": {"kl_old": ["mean"], "dev_success": ["fall"]}, "after": after, "wall_time": True}
    asking |= {"placement": {"return_to_go": "local:engines=1,env_workers=1"}}
    plan_file.write_text(yaml.safe_dump(TINY | asking))
    first = subprocess.Popen(
        command(plan_file, "screen"), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    wait_for(folder / "metrics.jsonl", first, '"phase": "rl"')
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    done = subprocess.run(command(plan_file, "screen"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cells = plan_file.parent / "cells" / "tiny"
    killed = json.loads((cells / "grpo" / "0.json").read_text())
    assert [session["ended"] for session in killed["sessions"]] == ["killed", "done"]
    assert [point["update"] for point in killed["curve"]] == [1, 2]
    log = (folder.parent / "grpo-0.log").read_text()
    assert "resumed after update" in log or "is complete" in log
    assert {row["name"] for row in killed["evaluations"]} == {"warm start", "after RL"}
    assert killed["machine"]["cores"]
    assert killed["seconds"] > 0
    assert len(killed["commit"]) >= 12
    assert [update for update, _ in killed["metrics"]["kl_old"]] == [1, 2]
    found = killed["after"]["found"]
    assert found["pass_at"]["k"] == 2
    assert 0 <= found["pass_at"]["success"] <= found["pass_at"]["pass_at_k"] <= 1
    assert sum(count for _, count in found["entropy_by_turn"]) > 0
    assert all(0 < entropy < math.log(300) + 1e-6 for entropy, _ in found["entropy_by_turn"])
    assert found["nll"]["before"] > 0
    assert found["nll"]["after"] != found["nll"]["before"]
    placed = json.loads((cells / "return_to_go" / "0.json").read_text())
    assert placed["asked"]["placement"] == "local:engines=1,env_workers=1"
    assert (folder.with_name("return_to_go-0") / "engine-0.log").exists()
    for seconds in ([point["seconds"] for point in cell["curve"]] for cell in (killed, placed)):
        assert 0 < seconds[0] < seconds[1]
    again = subprocess.run(command(plan_file, "screen"), capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (0, ""), "what is done is not done again"
    text = report(part, plan_file)
    assert "**Screened** with seed 0" in text
    assert "not recorded" not in text
    assert "not significant" in text
    assert " seconds |" in text


@pytest.mark.slow
@pytest.mark.full
def test_a_campaign_in_the_background_stops_when_it_is_asked_to(plan_file):
    campaign = subprocess.Popen(
        command(plan_file, "screen"),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # noqa: PLW1509 (it has one thread yet)
    )
    wait_for(plan_file.parent / "runs" / "tiny" / "grpo-0.sessions.json", campaign, "killed")
    campaign.send_signal(signal.SIGINT)
    _, said = campaign.communicate()  # its run saves first, which takes what it takes
    assert (campaign.returncode, b"stopped; the same command goes on" in said) == (130, True)


@pytest.mark.slow
def test_a_spent_budget_runs_nothing(plan_file):
    done = subprocess.run(
        command(plan_file, "screen", "--budget", "0"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "the budget is spent before tiny/grpo/0 is done" in done.stderr
    assert not (plan_file.parent / "cells").exists()


def test_one_setting_is_played_alone(part, plan_file):
    settings = {"tiny": TINY["settings"]["tiny"], "other": TINY["settings"]["tiny"]}
    plan_file.write_text(yaml.safe_dump(TINY | {"settings": settings}))
    plan, cells_of = part("plan").read_plan(plan_file), importlib.import_module("campaign").cells_of
    assert {cell.setting for cell in cells_of(plan, "screen", plan_file.parent)} == {"tiny", "other"}
    assert {cell.setting for cell in cells_of(plan, "screen", plan_file.parent, ["other"])} == {"other"}
    with pytest.raises(TurnwiseError, match="no setting 'othre'"):
        cells_of(plan, "screen", plan_file.parent, ["othre"])


def test_a_screen_of_all_seeds_has_one_table(part, plan_file):
    assert "**Confirmed**" in report(part, plan_file)
    plan_file.write_text(yaml.safe_dump(TINY | {"screen": {"seeds": [0, 1]}}))
    for method in ("grpo", "return_to_go"):
        for seed in (0, 1):
            write_result(part, plan_file, method, seed, 20)
    said = report(part, plan_file)
    assert "**Confirmed**" not in said
    assert "to be confirmed" not in said


@pytest.mark.slow
def test_a_budget_that_ends_within_a_cell_stops_it_and_writes_down_its_time(part, tmp_path):
    cell = part("plan").Cell("tiny", "grpo", 0)
    endless = [sys.executable, "-c", "while True: pass"]
    ended = part("carry_out").carry_out(cell, endless, tmp_path, seconds=0.0)
    (session,) = part("carry_out").Sessions(cell.folder(tmp_path)).rows
    assert ended == session["ended"] == "stopped"
    assert session["seconds"] > 0
    assert 0 < session["cpu_seconds"] <= session["seconds"] + 1
    assert session["load_during"]["samples"] >= 1


@pytest.mark.slow
def test_no_hook_runs_in_which_an_interrupt_would_be_lost_while_a_cell_is_started(tmp_path):
    program = (
        "import os, sys; from pathlib import Path; from campaigning.carry_out import carry_out; from campaigning.plan import Cell\n"
        "ran = []; os.register_at_fork(after_in_parent=lambda: ran.append(1))\n"
        "print(carry_out(Cell('tiny', 'grpo', 0), [sys.executable, '-c', ''], Path(sys.argv[1]), 600), len(ran))"
    )
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(LEARNING), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env=where, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["done", "0"]
