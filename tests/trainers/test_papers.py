"""docs/papers.md is what the registry says, and everything it names exists."""

import re
from pathlib import Path

import pytest

from turnwise.registry import Component, get_component
from turnwise.trainers.lab.papers import every_component, home, report

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
