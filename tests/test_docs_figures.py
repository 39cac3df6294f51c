"""Every figure in the documents is what its committed result, or the code, says (scripts/docs_figures.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_figures", ROOT / "scripts" / "docs_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documents_have_the_figures_of_their_sources(figures: ModuleType) -> None:
    assert [str(page) for page, _ in figures.stale()] == [], "run `python scripts/docs_figures.py`"
    texts = [page.read_text("utf-8") for page in figures.pages()]
    found = [name for text in texts for _, name in figures.FIGURE.findall(text)]
    assert sum(text.count("<!-- figure: ") for text in texts) == len(found), (
        "a comment without a number before it"
    )
    tables = [name for text in texts for name in figures.TABLE.findall(text)]
    assert sum(text.count("<!-- table: ") for text in texts) == len(tables), "a table that does not end"
    known = figures.named()
    assert {*found} == {*known.figures}, "a name in docs/figures.yaml that no page has"
    assert sorted(tables) == sorted(known.tables), "each table stands on one page"


KNOWN = {
    "figures": {"pins": "envs/swe/packages.yaml > len"},
    "tables": {"t": "| {{ envs/swe/packages.yaml > len }} |\n"},
}


def test_a_stale_figure_is_replaced(figures: ModuleType) -> None:
    known, source = figures.Named(**KNOWN), "<!-- figure: pins -->"
    assert figures.filled(f"pins 17{source} packages", "page", known) == f"pins 15{source} packages"
    assert figures.filled(f"of [–0.5{source}]", "page", known) == f"of [–15{source}]"
    old = "a\n<!-- table: t -->\n\n| 17 |\n\n<!-- table ends -->\nb"
    assert figures.filled(old, "page", known) == old.replace("17", "15")


def test_an_unknown_name_is_told_with_the_nearest(figures: ModuleType) -> None:
    with pytest.raises(
        SystemExit, match=r"^docs/x\.md: docs/figures\.yaml has no 'pin'\. Did you mean 'pins'\?$"
    ):
        figures.filled("17<!-- figure: pin -->", "docs/x.md", figures.Named(**KNOWN))


@pytest.mark.parametrize(
    "expression",
    [
        "benchmarks/gone.json > x",
        "benchmarks/train.json > figures > gone > value",
        "benchmarks/suites.json > suites > suite=gone > turns",
        "registry > gone > len",
        "turnwise.gone:NAME",
        "benchmarks/train.json > figures > lean > value as nonsense",
    ],
)
def test_a_source_without_the_figure_is_named(figures: ModuleType, expression: str) -> None:
    with pytest.raises(SystemExit, match=r"docs/x\.md: ") as raised:
        figures.figure(expression, "docs/x.md")
    assert expression in str(raised.value)


@pytest.mark.parametrize(
    ("value", "form", "written"),
    [
        (58857.9, "3s", "58,900"),
        (1.7196, "2s", "1.7"),
        (0, "2s", "0.0"),
        (0.8421, ".2f", "0.84"),
        (0.21, "%d", "21"),
        (276.9, "ms", "0.28"),
        (-0.1162, "-.3f", "0.116"),
        (11.9, "d", "12"),
        (1154, "", "1,154"),
        ("2026-11-22", "", "2026-11-22"),
    ],
)
def test_a_figure_is_written_as_asked_for(
    figures: ModuleType, value: object, form: str, written: str
) -> None:
    assert figures._written(value, form) == written
