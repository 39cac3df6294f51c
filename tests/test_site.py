"""The documentation site: it builds without a warning, and what is generated names everything there is."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("mkdocs")
_SPEC = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts" / "site.py")
assert _SPEC is not None
assert _SPEC.loader is not None
site = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(site)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning (a dead link, a page without a place) is a failure."""
    for name in ("material", "mkdocstrings"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_site_is_built_and_fetches_nothing(built: Path) -> None:
    home = (built / "index.html").read_text("utf-8")
    assert "Multi-turn environments" in home
    assert 'src="http' not in home
    assert 'rel="stylesheet" href="http' not in home


@pytest.mark.slow
def test_the_reference_has_every_suite_part_and_verb(built: Path) -> None:
    from turnwise.cli.app import VERBS
    from turnwise.envs.registry import env_entries, suites
    from turnwise.kinds import KINDS
    from turnwise.registry import components

    pages = {
        name: (built / "reference" / name / "index.html").read_text("utf-8")
        for name in ("suites", "parts", "command-line")
    }
    entries = {entry.name: entry.entry_point for entry in env_entries()}
    ours = [suite.name for suite in suites() if entries[suite.env].startswith("turnwise.")]
    parts = [one.name for kind in KINDS for one in components(kind) if one.module.startswith("turnwise.")]
    assert ours
    assert parts
    assert not [name for name in ours if name not in pages["suites"]]
    assert not [name for name in parts if name not in pages["parts"]]
    assert not [verb for verb in VERBS if f"turnwise {verb}" not in pages["command-line"]]


def test_links_out_of_the_documents_lead_to_the_repository() -> None:
    text = "[a](../benchmarks/search.json) and [b](../worlds.md) and [c](../../CHANGELOG.md#unreleased)"
    assert site.outside_links(text, "how-to/page.md", "https://x.org/r") == (
        "[a](../benchmarks/search.json) and [b](../worlds.md) and [c](https://x.org/r/blob/main/CHANGELOG.md#unreleased)"
    )
    assert "https://x.org/r/tree/main/trainers/credit)" in site.outside_links(
        "[d](../trainers/credit)", "p.md", "https://x.org/r/"
    )


def test_a_forgotten_page_still_has_a_place() -> None:
    from mkdocs.config import load_config

    config = site.on_config(load_config(str(ROOT / "mkdocs.yml"), hooks=[]))
    listed = set(site._pages(config.nav))
    assert not {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - listed


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    from turnwise.cli.app import INTERRUPTED

    assert set(site.EXIT_CODES) == {0, 1, 2, INTERRUPTED}
