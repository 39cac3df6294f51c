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
    kept = smollm.kept()
    assert smollm.table(kept["cells"], kept["learned"]) in PAGE.read_text("utf-8"), (
        "python benchmarks/smollm.py --page"
    )


def test_a_cell_that_was_not_played_is_not_run_and_one_that_was_has_its_interval(smollm: Any) -> None:
    cells = {"search/quick greedy": {"success": 0.1, "success_interval": [0.04, 0.21]}}
    ways = {way: {"before": 0.2, "after": 0.5} for way in ("greedy", "sampled")}
    lines = smollm.table(cells, {"search/quick": {"1": ways, "0": ways}}).splitlines()
    assert (
        lines[2]
        == "| search/quick | 10 % (4 … 21) | not run | 20 %, 20 % | 20 %, 20 % | 50 %, 50 % | 50 %, 50 % |"
    )
    assert (
        lines[3]
        == "| code/quick | not run | not run | not trained | not trained | not trained | not trained |"
    )
    assert len(lines) == 2 + len(smollm.SUITES)
    assert (smollm.SUITES[0], "greedy") not in smollm.missing(cells)
    assert len(smollm.missing(cells)) == 2 * len(smollm.SUITES) - 1
    assert all(get_suite(suite.name) for suite in smollm.SUITES)
