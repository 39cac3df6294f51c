"""docs/papers.md is what the registry says, and everything it names exists."""

import re
from pathlib import Path
from typing import Any

import pytest

from turnwise.cli.environments import list_
from turnwise.envs.builtin import FORMS
from turnwise.envs.registry import suites
from turnwise.errors import TurnwiseError
from turnwise.kinds import AIMS
from turnwise.registry import Component, get_component
from turnwise.trainers.lab.papers import BookRow, every_component, home, papers, report

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


def test_every_paper_of_a_part_has_a_name() -> None:
    cited = {entry.paper for entry in every_component() if entry.paper}
    together = {paper for _, paper, _ in papers().together}
    assert cited <= set(papers().names) <= cited | together, (
        "a paper without a name, or a name without a part"
    )
    for paper, name in papers().names.items():
        assert name
        assert paper in together or f"{name} [{paper}]" in PAGE


def test_the_list_has_each_row_once_in_order() -> None:
    numbers = [row.number for row in papers().rows]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 243
    assert len({row.name for row in papers().rows}) == 243


@pytest.mark.parametrize("row", papers().rows, ids=lambda row: str(row.number))
def test_a_row_claims_only_what_exists(row: BookRow) -> None:
    """Each part is registered, one of them is of the row's paper, and each name or file in code quotes exists."""
    entries = [get_component(*part.split("/")) for part in row.parts]
    assert not row.paper or row.paper in {entry.paper for entry in entries}
    paths = re.findall(r"(?:trainers|envs|agents|benchmarks|tests|scripts)/[\w/]+(?:\.\w+)?", row.how)
    assert all((ROOT / path).exists() for path in paths)
    assert row.how.endswith(".")
    if row.status == "not here":
        assert not row.parts
    else:
        assert row.parts or paths or suites_in(row.how) or row.number in WITHOUT_A_FILE
    assert ("missing" in row.how) or row.status != "in part", "say what is missing"
    for said in re.findall(r"`([^`]+)`", row.how):
        names = {*re.findall(r"\w+", said)}
        assert names & KNOWN or suites_in(said) or (ROOT / said).exists(), said


def suites_in(said: str) -> set[str]:
    """The suites, and the forms of suites, that a text names."""
    return {name for name in re.findall(r"[\w-]+[/:][\w-]*", said) if name in SUITES}


SUITES = {suite.name for suite in suites()} | {
    f"{form}:{rest}" for form in FORMS for rest in ("", "middle", "PATH")
}
WITHOUT_A_FILE = (48, 166, 205)
"""Rows of which a part is there by keys of the recipe, or by what every run does."""
KNOWN = {entry.name for entry in every_component()} | {
    "warm_start", "run", "phases", "rollout", "judge", "signal", "then", "late", "center", "length", "algorithm", "tulu3", "turnwise",
    "audit", "marked", "worst", "lite_ppo", "nft", "loop", "dcpo", "ngrpo", "epo",
}  # fmt: skip


def test_a_claim_that_is_not_so_is_seen() -> None:
    row = papers().rows[1]
    for wrong in (
        row._replace(parts=["credit/no_such_rule"]),
        row._replace(paper="9999.99999"),
        row._replace(how="It is in trainers/credit/nowhere.py."),
        row._replace(status="not here"),
        row._replace(status="in part"),
    ):
        with pytest.raises((AssertionError, TurnwiseError)):
            test_a_row_claims_only_what_exists(wrong)


def test_parts_that_are_named_together_exist() -> None:
    """Each name in code quotes is a part."""
    for _, _, how in papers().together:
        for said in re.findall(r"`([^`]+)`", how):
            assert said in {entry.name for entry in every_component()}, said


def test_a_loss_is_listed_with_its_objective_and_nothing_else_is() -> None:
    losses: Any = list_("loss").value
    rules: Any = list_("credit").value
    assert all(row["objective"] for row in losses)
    assert not any("objective" in row for row in rules)
