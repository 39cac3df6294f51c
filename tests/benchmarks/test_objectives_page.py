"""The page of objectives says what was measured, of every loss that there is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from objectives import FIGURES, PAGE, page

from turnwise.registry import components
from turnwise.trainers.lab.objectives import Setting, angles

KEPT = json.loads((ROOT / FIGURES).read_text("utf-8"))


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text("utf-8") == page(KEPT), "run `python benchmarks/objectives.py --page`"


def test_every_loss_is_there() -> None:
    names = {entry.name for entry in components("loss")}
    assert {*KEPT["milliseconds"]} == names, "run `python benchmarks/objectives.py`"
    text = page(KEPT)
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_figures_are_what_is_measured_now() -> None:
    found = angles(Setting())
    for name, row in KEPT["fresh"].items():
        assert found[name]["clip"] == pytest.approx(row["clip"], abs=0.01)
