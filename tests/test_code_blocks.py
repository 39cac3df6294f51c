"""The code of the pages runs: tutorials and how-to pages from top to bottom, and every recipe is one."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
import yaml

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("pages", ROOT / "scripts" / "pages.py")
assert _SPEC is not None
assert _SPEC.loader is not None
pages: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["pages"] = pages
_SPEC.loader.exec_module(pages)

DOCS = ROOT / "docs"
FOLLOWED = sorted(path for folder in ("tutorials", "how-to") for path in (DOCS / folder).glob("*.md"))
RECIPES = sorted(
    path for path in (*DOCS.glob("*.md"), *FOLLOWED, ROOT / "README.md")
    if path.name != "recipe-mistakes.md"  # which tests/trainers/test_recipe_mistakes.py reads
)  # fmt: skip
SHORT = (
    "updates=1", "warm_start.episodes=32", "rollout.groups=2", "rollout.group_size=2", "evaluate.every=1", "evaluate.dev=4",
    "evaluate.test=4",
)  # fmt: skip
NOT_RUN = ("pip ", "make ", "git ")  # what installs is run by tests/cli/test_packaging.py


def short(command: str) -> list[str]:
    """A command's words, with a run made small."""
    words = shlex.split(command)
    return [*words, *(("--set", *SHORT) if words[:2] == ["turnwise", "train"] else ())]


@pytest.mark.slow
@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_a_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    if any("turnwise train" in command for block in pages.blocks(page) for command in block.commands):
        pytest.importorskip("torch")
    for block in pages.blocks(page):
        if block.title:
            pages.write_file(block, tmp_path)
        for command in block.commands:
            if block.why_not or command.startswith(NOT_RUN):
                continue
            words = short(command)
            assert words[0] == "turnwise"
            done = forked.turnwise(*words[1:], cwd=tmp_path, env={**os.environ}, timeout=280, training=True)
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_recipes_of_a_page_are_recipes(page: Path) -> None:
    found = [block for block in pages.blocks(page) if block.language == "yaml" and not block.why_not]
    if not found:
        return
    pytest.importorskip("torch")
    from turnwise.trainers.recipe.load import check_recipe, load_recipe

    for block in found:
        keys = yaml.safe_load(block.text)
        if str(keys.get("suite", "")).endswith(".py"):
            keys["suite"] = "shop/quick"  # the page's own file is there when the page is followed
        if "suite" in keys:
            check_recipe(keys)
        else:  # some keys, which belong into any recipe
            load_recipe("shop-quick", keys)


def run_python(page: str) -> None:
    """Run a page's blocks of Python that are no files, one after the other."""
    names: dict[str, Any] = {}
    for block in pages.blocks(DOCS / page):
        if block.language == "python" and not block.title and not block.why_not:
            exec(compile(block.text, page, "exec"), names)  # noqa: S102


def test_python_of_the_page_on_comparing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_python("comparing.md")
    assert "significant Interval(low=1.0" in capsys.readouterr().out


@pytest.mark.usefixtures("sandboxed")
def test_python_of_the_page_on_sandboxes_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_python("sandboxes.md")
    assert capsys.readouterr().out == "42\n\n"


@pytest.mark.slow
def test_python_of_the_page_on_the_gateway_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_python("gateway.md")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "True False"
    assert len(said) == 2  # what the suite's episodes scored, of an agent that does nothing


def test_python_of_the_page_on_tool_worlds_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the page's record of answers is written
    run_python("toolworld.md")
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_pages_with_python_are_run() -> None:
    """By the tests above, or those of README, of the API's page and of what is yours; extending/ is generated from code that runs."""
    found = {
        page.name for page in DOCS.glob("*.md") if any(b.language == "python" for b in pages.blocks(page))
    }
    elsewhere = {"api.md", "evaluating.md", "your-own-agent.md"}
    assert found == elsewhere | {"comparing.md", "sandboxes.md", "gateway.md", "toolworld.md"}


COMMAND = re.compile(r"^(?:    |\$ )(turnwise (?:.*\\\n)*.*)$", re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if path.name != "lab-notes.md")]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if COMMAND.search(page.read_text("utf-8"))], ids=lambda page: page.stem
)
def test_commands_of_a_page_are_commands(page: Path) -> None:
    """Also those that are not run: the verb is there, with these options, and takes so many words."""
    from turnwise.cli.app import app

    for line in COMMAND.findall(page.read_text("utf-8")):
        command = re.split(r"\s+#\s", line.replace("\\\n", " "))[0]
        words = [word for word in shlex.split(command)[1:] if word != "--json"]
        if "--help" not in words:
            app.parse_args(words, exit_on_error=False, print_error=False)


def test_blocks_are_read_with_title_and_reason(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '<!-- not run: it needs a GPU -->\n```yaml\na: 1\n```\n```python title="a/b.py"\nx\n```\n```console\n$ one  # why\nsaid\n$ two\n```\n'
    )
    first, second, third = pages.blocks(page)
    assert (first.why_not, first.text) == ("<!-- not run: it needs a GPU -->", "a: 1\n")
    pages.write_file(second, tmp_path)
    assert (tmp_path / "a" / "b.py").read_text() == "x\n"
    assert third.commands == ["one", "two"]
