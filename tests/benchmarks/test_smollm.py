"""The table of the pretrained model before training is that of the committed result, and says what was not run."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from turnwise.envs.registry import get_suite

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "pretrained-model.md"


@pytest.fixture
def smollm(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("smollm")


def test_the_page_has_the_table_of_the_committed_cells(smollm: Any) -> None:
    assert smollm.table(smollm.kept()["cells"]) in PAGE.read_text("utf-8"), (
        "python benchmarks/smollm.py --table"
    )


def test_a_cell_that_was_not_played_is_not_run_and_one_that_was_has_its_interval(smollm: Any) -> None:
    cells = {"calc/bare greedy": {"success": 0.1, "success_interval": [0.04, 0.21]}}
    lines = smollm.table(cells).splitlines()
    assert lines[2] == "| calc/bare | 10 % (4 … 21) | not run |"
    assert len(lines) == 2 + len(smollm.SUITES)
    assert (smollm.SUITES[0], "greedy") not in smollm.missing(cells)
    assert len(smollm.missing(cells)) == 2 * len(smollm.SUITES) - 1
    assert all(get_suite(suite.name) for suite in smollm.SUITES)
