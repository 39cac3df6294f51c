"""The pages of docs/extending are what the registry knows, and their examples do what is required."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from turnwise.cli.app import run
from turnwise.kinds import KINDS
from turnwise.registry import likely_component
from turnwise.scaffold.pages import FORM, index, page, with_kinds

PAGES = Path(__file__).parents[1] / "docs" / "extending"
STARTED = ("engine", "sandbox")  # to check one of them takes a minute: tests/plugin does so for the engine


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_what_the_registry_knows(kind: str) -> None:
    remedy = "write it anew: python -m turnwise.scaffold.pages"
    assert (PAGES / f"{kind}.md").read_text("utf-8") == page(kind), remedy
    assert (PAGES / "README.md").read_text("utf-8") == index(), remedy


def test_the_page_for_contributors_leads_to_every_kind() -> None:
    text = (PAGES.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    assert re.findall(r"\[(\w+)\]\(docs/extending/\1\.md\)", text) == list(KINDS)


def test_the_form_for_a_new_part_offers_every_kind() -> None:
    text = (PAGES.parents[1] / FORM).read_text("utf-8")
    assert text == with_kinds(text), "write it anew: python -m turnwise.scaffold.pages"
    assert f"options: [{', '.join(KINDS)}, another]" in text


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_short_and_does_what_is_required(kind: str, tmp_path: Path) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", (PAGES / f"{kind}.md").read_text("utf-8"), re.DOTALL)
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
    file = tmp_path / f"{kind}_example.py"
    file.write_text(source.replace("mine", f"page_{kind}"))
    if kind in STARTED:
        from turnwise.envs.sources import load_module

        load_module(str(file))
    else:
        assert run(["check", str(file)]) == 0
    found = likely_component(kind, f"page_{kind}")
    assert found is not None
    assert found.package.endswith(file.name)
    _forget(kind, f"page_{kind}")


def _forget(kind: str, name: str) -> None:
    """Other tests of the same process look at all that is registered."""
    from turnwise import registry

    del registry._components[kind, name]
