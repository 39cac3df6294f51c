"""docs/papers.md is what the registry says, and everything it names exists."""

import re
from pathlib import Path
from typing import Any

import pytest

from turnwise.cli.environments import list_
from turnwise.kinds import AIMS
from turnwise.registry import Component, get_component
from turnwise.trainers.lab.papers import COMPOSED, every_component, home, report

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text()


def test_the_page_is_up_to_date() -> None:
    assert report() == PAGE, "write it anew: python -m turnwise.trainers.lab.papers > docs/papers.md"


@pytest.mark.parametrize("entry", every_component(), ids=lambda c: f"{c.kind}-{c.name}")
def test_every_component_is_listed_with_its_paper_and_file(entry: Component) -> None:
    lines = [line for line in PAGE.splitlines() if f"| `{entry.name}` | {entry.kind} |" in line]
    assert len(lines) == 1
    assert entry.paper in lines[0]
    assert (ROOT / home(entry)).is_file()
    assert not entry.paper or re.fullmatch(r"\d{4}\.\d{4,5}", entry.paper), "an arXiv id"


def test_everything_listed_exists() -> None:
    listed = re.findall(r"^\| .*? \| `(\w+)` \| (\w+) \| \[(\S+)\]\(\.\./\3\)", PAGE, re.MULTILINE)
    assert len(listed) == len(every_component())
    for name, seam, file in listed:
        assert home(get_component(seam, name)) == file
        assert (ROOT / file).is_file()


@pytest.mark.parametrize("entry", every_component(), ids=lambda c: f"{c.kind}-{c.name}")
def test_what_an_update_pursues_is_stated(entry: Component) -> None:
    """A credit rule and a reducer by their bias, a loss by its objective; one of a slope of its own in its own words."""
    if entry.kind in ("credit", "reduce"):
        assert entry.bias
    if entry.kind == "loss":
        assert entry.objective
        assert entry.slope != "own" or entry.objective not in AIMS.values()
        assert entry.objective in PAGE.replace("\\|", "|")


@pytest.mark.parametrize("row", [7, 20, 48, 122, 178, 246])
def test_rows_of_the_formula_book_are_on_the_page(row: int) -> None:
    assert f"({row})" in PAGE or row == 20
    assert get_component("source", "relift").paper in PAGE


def test_parts_that_are_named_together_exist() -> None:
    """Each name in code quotes is a part, or a key of the recipe with one."""
    known = {entry.name for entry in every_component()} | {"warm_start", "phases"}
    for _, _, how in COMPOSED:
        for said in re.findall(r"`([^`]+)`", how):
            names = re.findall(r"name: (\w+)", said) or [said.split(": ")[-1]]
            assert known & {*names, *re.findall(r"\w+", said)}, said


def test_a_loss_is_listed_with_its_objective_and_nothing_else_is() -> None:
    losses: Any = list_("loss").value
    rules: Any = list_("credit").value
    assert all(row["objective"] for row in losses)
    assert not any("objective" in row for row in rules)
