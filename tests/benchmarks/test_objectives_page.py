"""The page of objectives says what was measured, of every loss that there is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from objectives import CHOOSING, FIGURES, PAGE, QUESTIONS, campaigns, choosing, page

from turnwise.registry import components
from turnwise.trainers.lab.objectives import Setting, angles

KEPT = json.loads((ROOT / FIGURES).read_text("utf-8"))


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text("utf-8") == page(KEPT), "run `python benchmarks/objectives.py --page`"


@pytest.mark.slow
def test_the_page_of_choices_says_what_the_committed_cells_say() -> None:
    text = (ROOT / CHOOSING).read_text("utf-8")
    assert text == choosing(text), "run `python benchmarks/objectives.py --page`"
    assert all(f"plans/{name}.yaml" in text for name in QUESTIONS)


@pytest.mark.slow
def test_what_was_not_run_says_so_and_what_was_has_its_number() -> None:
    lines = campaigns().splitlines()[2:]
    (shown,) = [line for line in lines if "demonstrations.yaml" in line]
    cell = json.loads((ROOT / "benchmarks/learning/cells/shop-quick/first imitate/0.json").read_text("utf-8"))
    after = next(row for row in cell["evaluations"] if (row["name"], row["mode"]) == ("after RL", "sampled"))
    assert f"`first imitate` {100 * after['success']:.1f} %" in shown
    for line in lines:
        run, every = map(int, line.split(" | ")[2].split(" of "))
        assert (run < every) == ("not run" in line)


def test_every_loss_is_there() -> None:
    names = {entry.name for entry in components("loss")}
    assert {*KEPT["milliseconds"]} == names, "run `python benchmarks/objectives.py`"
    text = page(KEPT)
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


@pytest.mark.slow
@pytest.mark.full
def test_figures_are_what_is_measured_now() -> None:
    found = angles(Setting())
    for name, row in KEPT["fresh"].items():
        assert found[name]["clip"] == pytest.approx(row["clip"], abs=0.01)
