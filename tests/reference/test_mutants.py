"""The tool that changes parts a little and asks whether the tests notice (scripts/mutants.py)."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from plain import REFERENCES
from test_references import PARTS

ROOT = Path(__file__).parents[2]
PLANTED = '''
from turnwise.registry import component

@component("credit", "planted", bias="unbiased")
def planted(x, *, low: float = 0.2, high: float = 0.3):
    """What is clipped.

    >>> planted(2.0)
    0.3
    """
    if x < -5:
        return -low - 1
    return min(max(x, -low), high)
'''


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = [*sys.path]
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def survivors(tool: ModuleType, *tests: Any) -> list[str]:
    return [
        m.said
        for m in tool.mutants_of(PLANTED, "planted")
        if not tool.notices(m, "planted", "planted", [*tests])
    ]


def test_what_no_test_looks_at_survives_and_nothing_else(tool: ModuleType) -> None:
    def both_sides(target: Any) -> None:
        for x in (-4.0, -1.0, 0.1, 2.0):
            assert target(x) == min(max(x, -0.2), 0.3)
            assert target(x, low=0.5, high=0.05) == min(max(x, -0.5), 0.05)

    def everything(target: Any) -> None:
        both_sides(target)
        assert [target(x) for x in (-5.0, -5.5, -6.0)] == [-0.2, -1.2, -1.2]

    assert set(survivors(tool, both_sides)) == {
        *("`x < -5` → `x <= -5`", "`5` → `6`", "`5` → `4`", "`-low - 1` → `-low + 1`", "`-low - 1` → `-low`"),
        *("`-low - 1` → `1`", "`-low` → `low`", "`low` → `high`", "`1` → `2`", "`1` → `0`"),
    }, "all in the branch that nothing enters"
    assert survivors(tool, everything) == []


def test_a_test_that_looks_at_nothing_lets_everything_but_the_example_survive(tool: ModuleType) -> None:
    left = survivors(tool)
    assert "`low` → `high` (2)" in left
    assert "`high` → `low`" not in left, "its example notices"


def test_the_report_has_every_part_and_explains_every_survivor(tool: ModuleType) -> None:
    found = json.loads(tool.REPORT.read_text("utf-8"))
    assert {"/".join(part) for part in PARTS} == set(found["parts"]), "run `make mutants`"
    assert {part: row["unexplained"] for part, row in found["parts"].items() if row["unexplained"]} == {}
    assert tool.PAGE.read_text("utf-8") == tool.page(found)
    for kind, name in PARTS:
        given = {option: [repr(x) for x in xs] for option, xs in REFERENCES[kind, name].options.items()}
        assert found["parts"][f"{kind}/{name}"]["options"] == given


def test_a_part_has_none_of_the_mutants_of_the_part_beside_it(tool: ModuleType) -> None:
    both = PLANTED + PLANTED.replace("planted", "other").replace("-5", "-7")
    assert [m.said for m in tool.mutants_of(both, "planted")] == [
        m.said for m in tool.mutants_of(PLANTED, "planted")
    ]


def test_what_a_signal_is_on_a_process_is_no_part_of_its_mutants(tool: ModuleType) -> None:
    """It is the laboratory's, and compared with formulas of its own."""
    source = """
def _exact(p):
    return {"x": p.x + 7}

def helper(x):
    return x + 5

@component("signal", "x", gives=("x",), exact=_exact)
def x(see, batch, groups):
    return helper(3)
"""
    said = " ".join(mutant.said for mutant in tool.mutants_of(source, "x"))
    assert "5" in said
    assert "7" not in said


@pytest.mark.parametrize(
    ("file", "said", "instead", "counts"),
    [
        ("outcomes", "def grpo(", "def grpo(  # as in the paper\n", False),
        ("plain", "def to_go(", "def of_no_use(x: int) -> int:\n    return x\n\n\ndef to_go(", False),
        ("plain", "eps: float = 1e-6", "eps: float = 1e-5", True),
        ("ragged", "JUNK = ", "JUNK = 1 + ", True),
        ("mutants", "WAITS = 30", "WAITS = 31", False),
        ("mutants", "if said not in SLOW", "if said in SLOW", True),
        ("mutate", "import ast", "import ast\nMORE = 1", True),
        ("law", "def credit_law(", "def credit_law(*more: int, ", True),
        ("law", "def reward_law(", "def reward_law(*more: int, ", False),
    ],
)
def test_a_row_is_of_other_files_where_what_it_rests_on_has_changed(
    tool: ModuleType, file: str, said: str, instead: str, counts: bool
) -> None:
    def changed(module: str) -> str | None:
        text = tool.read_here(module)
        if module == file:
            assert said in text
            return text.replace(said, instead, 1)
        return text

    now = tool.digest("credit", "grpo")
    assert (tool.digest("credit", "grpo", changed) != now) is counts
    other = tool._source("credit", "grpo")
    assert tool.digest("credit", "grpo", part=f"# A comment.\n{other}") == now
    assert tool.digest("credit", "grpo", part=f"{other}\nMORE = 1\n") != now
