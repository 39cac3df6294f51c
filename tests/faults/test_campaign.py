"""The fault campaign of benchmarks/faults.py: a few of its trials, and whether its judge sees what is wrong."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def faulting() -> Iterator[Any]:
    """``faulting("trial")`` is the module of that name."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield lambda name: importlib.import_module(f"faulting.{name}")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def runner(faulting: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    runner = faulting("trial").Runner(tmp_path_factory.mktemp("campaign"))
    yield runner
    runner.close()


def trial(faulting: Any, kind: str, fault: str, scope: str = "eval", **wanted: Any) -> Any:
    """The first trial that is about this fault."""
    draw = faulting("draw").draw
    for number in range(2000):
        found = draw(number, 1, (kind,), (scope,))
        if found.fault == fault and all(getattr(found, name) == value for name, value in wanted.items()):
            return found
    raise AssertionError(f"no {kind}/{fault}")


ROWS = [
    ("kill", "SIGKILL × 2", {}),
    ("lie", "reward nan", {}),
    ("lie", "StopIteration", {"world": "blocking"}),
    ("lie", "GeneratorExit", {"world": "pure"}),
    ("lie", "policy server: deep arguments", {}),
    ("flood", "write stdout", {}),
    ("lost fsync", "power failure × 2, content and names", {}),
]


IN_TEST = {
    "SIGKILL × 2",
    "reward nan",
    "write stdout",
    "power failure × 2, content and names",
}  # others in make test-full


@pytest.mark.parametrize(
    ("kind", "fault", "wanted"),
    [
        pytest.param(*row, id=f"{row[0]}-{row[1]}", marks=() if row[1] in IN_TEST else pytest.mark.full)
        for row in ROWS
    ],
)
def test_an_evaluation_stands_it(faulting: Any, runner: Any, kind: str, fault: str, wanted: Any) -> None:
    found = runner(trial(faulting, kind, fault, **wanted))
    assert found["violations"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("kill", "SIGKILL × 2"),
        pytest.param("lost fsync", "power failure × 2, content and names", marks=pytest.mark.full),
        pytest.param("engine", "an answer: nan", marks=pytest.mark.full),
        pytest.param("engine", "an answer: a stop token inside", marks=pytest.mark.full),
    ],
)
def test_a_training_run_stands_it(faulting: Any, runner: Any, kind: str, fault: str) -> None:
    pytest.importorskip("torch")
    found = runner(trial(faulting, kind, fault, "train"))
    assert found["violations"] == []


def test_a_trial_is_a_function_of_its_seed(faulting: Any) -> None:
    draw, kinds = faulting("draw").draw, faulting("draw").KINDS
    first, again, other = ([draw(n, seed, kinds) for n in range(300)] for seed in (1, 1, 2))
    assert first == again != other
    assert {trial.kind for trial in first} == {t.kind for t in first if t.scope == "train"} == set(kinds)


# --- the judge -----------------------------------------------------------------------------------------


def line(number: int, outcome: str = "ok", end: str | None = "solved", error: str = "") -> dict[str, Any]:
    turn = {"reward": 0.3, "rewards": {"outcome": 0.3}}
    task = {"prompt": f"task {number}"}
    return {
        "task_id": f"t{number}",
        "task": task,
        "seed": number,
        "update": None,
        "group": None,
        "outcome": outcome,
        "end": end,
        "error": error,
        "metrics": {"seconds": 1.0},
        "agents": {"agent": {"turns": [turn]}},
    }


FAILED = line(2, "infra_error", None, "it hangs")


@pytest.mark.parametrize(
    ("lines", "expect", "wrong"),
    [
        ([line(1), FAILED], "masked", ""),
        ([line(1), line(2, "ok", "failed")], "masked", "an episode that failed counts"),
        ([line(1), line(2, "env_error", None)], "masked", "no cause"),
        ([line(1), line(1), FAILED], "masked", "more than once"),
        ([line(1)], "masked", "1 episodes are not in the log"),
        ([line(1, "env_error", None, "why"), FAILED], "masked", "a sound episode differs"),
        ([line(1), FAILED], "mistake", "not the agent's failure"),
        ([line(1), line(2)], "mistake", "not the agent's failure"),
        ([line(1), line(2, "ok", "failed")], "mistake", ""),
        ([line(1), FAILED], "counted", "does not count as it should"),
    ],
)
def test_the_judge_sees_what_is_wrong(faulting: Any, lines: Any, expect: str, wrong: str) -> None:
    sound = [line(1), line(2)]
    found = faulting("judge")._episodes(lines, sound, expect, lambda prompt: prompt == "task 2")
    assert wrong in "; ".join(found) if wrong else not found


def test_a_failure_that_is_counted_as_zero_shows_in_the_figures(faulting: Any) -> None:
    counting = [line(1), line(3, "ok", "failed")]
    right = {
        "success": 0.5,
        "mean_score": 0.3,
        "results": {"t1": [1.0], "t3": [0.0]},
        "episodes": 3,
        "outcomes": {"ok": 2, "infra_error": 1},
        "causes": [{"episodes": 1}],
    }
    figures = faulting("judge")._figures
    assert figures(right, counting, 3) == []
    as_zero = right | {"success": 1 / 3, "results": {**right["results"], "t2": [0.0]}}
    assert len(figures(json.loads(json.dumps(as_zero)), counting, 3)) == 2


def test_a_power_failure_takes_what_was_not_synced(faulting: Any, tmp_path: Path) -> None:
    import os
    from random import Random

    power = faulting("power")
    out = tmp_path / "run"
    out.mkdir()
    journal = power.Journal(out, tmp_path / "journal")

    def sync(path: Path) -> None:
        number = os.open(path, os.O_RDONLY)
        journal.synced(number)
        os.close(number)

    (out / "log").write_text("safe")
    (out / "old").write_text("old")
    for path in (out / "log", out / "old", out):
        sync(path)
    with (out / "log").open("a") as log:
        log.write(" and not")
    (out / "new").write_text("new")
    (out / "aside").write_text("replaced")
    sync(out / "aside")
    journal.close()
    (out / "aside").replace(out / "old")
    assert power.cut(out, tmp_path / "journal", Random(0), names=True) > 0
    assert not (out / "new").exists()
    assert (out / "old").read_text() == "old"
    assert (out / "log").read_text().startswith("safe")
