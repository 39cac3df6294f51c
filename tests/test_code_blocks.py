"""The code of the pages runs: tutorials and how-to pages from top to bottom, and every recipe is one."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import forked
import pytest
import yaml

from turnwise.envs.worlds.speaking import server as speaking

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


def short(command: str, folder: Path) -> list[str]:
    """A command's words, with a run made small; a recipe of phases has an update in each."""
    words = shlex.split(command)
    if words[:2] != ["turnwise", "train"]:
        return words
    recipe = folder / words[2]
    keys = yaml.safe_load(recipe.read_text("utf-8")) if recipe.is_file() else {}
    phases = [f"phases.{phase['name']}.updates=1" for phase in keys.get("phases", ())]
    fits = [one for one in SHORT if not phases or not one.startswith(("updates=", "warm_start."))]
    return [*words, "--set", *fits, *phases]


def heavy(page: Path) -> bool:
    """Whether a page trains or plays a pretrained model, which takes minutes of a processor."""
    return any("smollm" in command for block in pages.blocks(page) for command in block.commands)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=[pytest.mark.full] if heavy(page) else []) for page in FOLLOWED],
)
def test_a_page_can_be_followed(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if heavy(page):
        request.getfixturevalue("smollm2")
    if any("turnwise train" in command for block in pages.blocks(page) for command in block.commands):
        pytest.importorskip("torch")
    for block in pages.blocks(page):
        if block.title:
            pages.write_file(block, tmp_path)
        for command in block.commands:
            if block.why_not or command.startswith(NOT_RUN):
                continue
            words = short(command, tmp_path)
            assert words[0] == "turnwise"
            timeout = 1500 if heavy(page) else 280
            done = forked.turnwise(
                *words[1:], cwd=tmp_path, env={**os.environ}, timeout=timeout, training=True
            )
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
        page.name
        for page in DOCS.rglob("*.md")
        if page.parent.name != "extending"
        and any(b.language == "python" and not b.title and not b.why_not for b in pages.blocks(page))
    }
    elsewhere = {"api.md", "evaluating.md", "your-own-agent.md"}
    assert found == elsewhere | {"comparing.md", "sandboxes.md", "gateway.md", "toolworld.md"}


COMMAND = re.compile(r"^(?:    |\$ )(turnwise (?:.*\\\n)*.*)$", re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "lab-notes")]


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


LONG = ("train", "check", "survey", "fairness")
"""Verbs that take many seconds each: pages with them are run whole in `make test-full`."""

NOT_COMMANDS = {  # pages whose blocks without a language are no commands, and what they are
    "architecture.md": "drawings of the code's layers",
    "engines.md": "a job of a cluster's queue",
    "recipe-mistakes.md": "errors, compared by tests/trainers/test_recipe_mistakes.py",
}


def prepare(page: Path, folder: Path) -> None:
    """What commands of pages take for granted: a function of one's own, and three evaluations."""
    (folder / "my_agent.py").write_text("def act(history):\n    return 'search[scarf]'\n")
    if "evals/" in page.read_text("utf-8"):
        for name, script in (("a", "gold"), ("b", "random"), ("c", "demonstrator")):
            asked = f"eval calc/easy --policy scripted:{script} --episodes 2 --out evals/{name}".split()
            assert run_command(asked, folder).returncode == 0


def run_command(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """One command in a folder, with nothing to read: whoever is asked to play leaves at once."""
    trains = words[0] in ("train", "explain")
    return forked.turnwise(*words, cwd=folder, env={**os.environ}, timeout=1500, training=trains)


def shrunk(command: str, server: str) -> list[str]:
    """The words of a command behind `turnwise`, with few episodes: a trained model is a script, and a server of others is ours."""
    verb, *words = shlex.split(command)[1:]
    words = [re.sub(r"^(vllm|torch):.*", "scripted:gold", word) for word in words]
    words = [re.sub(r"^openai:([^@]+)@.*", rf"openai:\1@{server}", word) for word in words]
    if verb == "eval":
        return [verb, *_without(words, "--episodes", "--k"), "--episodes", "2", "--k", "1"]
    if verb == "train":
        small = (*SHORT, "engine.kind=torch")
        return [verb, *words, *(() if "--set" in words else ("--set",)), *small]
    if verb in ("check", "survey", "fairness"):
        return [verb, *_without(words, "--tasks"), "--tasks", "3"]
    return [verb, *words]


def _without(words: Sequence[str], *options: str) -> list[str]:
    return [
        word
        for n, word in enumerate(words)
        if word not in options and (n == 0 or words[n - 1] not in options)
    ]


def run_page(page: Path, folder: Path, verbs: Callable[[str], bool]) -> None:
    """Run the commands of a page whose verbs are wanted, in the order in which they stand."""
    prepare(page, folder)
    with speaking.serve(lambda _: "search[scarf]") as server:
        for block in pages.commands(page):
            for line in filter(block.runs, block.lines):
                words = shrunk(line, f"{server.url}")
                if not verbs(words[0]):
                    continue
                done = run_command(words, folder)
                assert done.returncode == 0, (
                    f"$ {line}\n(run as {words})\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                )


WITH_COMMANDS = [
    page
    for page in PAGES
    if page not in FOLLOWED
    and page.parent.name != "extending"  # generated, and used by tests/test_extending.py
    and any(block.runs(line) for block in pages.commands(page) for line in block.lines)
]


IN_CHROMIUM = ("web.md",)
RUN = [
    pytest.param(page, id=page.stem, marks=[pytest.mark.browser] * (page.name in IN_CHROMIUM))
    for page in WITH_COMMANDS
]


@pytest.fixture
def its_browser(page: Path, request: pytest.FixtureRequest) -> None:
    """Chromium, for the pages that want it."""
    if page.name in IN_CHROMIUM:
        request.getfixturevalue("browser")


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed", "its_browser")
@pytest.mark.parametrize("page", RUN)
def test_quick_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, lambda verb: verb not in LONG)


@pytest.mark.full
@pytest.mark.usefixtures("sandboxed", "its_browser")
@pytest.mark.parametrize("page", RUN)
def test_all_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run_page(page, tmp_path, lambda verb: True)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    """Python and YAML by the tests above, TOML by the next one; a command that is run is one of ours, and complete."""
    for block in pages.blocks(page):
        assert block.language in ("", "console", "python", "yaml", "toml", "json"), block.text
        if not block.language and page.parent.name != "extending":
            known = block.why_not or pages.is_commands(block) or page.name in NOT_COMMANDS
            assert known, f"What is this?\n{block.text}"
    for block in pages.commands(page):
        for line in filter(block.runs, block.lines):
            assert line.startswith("turnwise "), f"It is not run, and does not say why: {line}"
            assert "…" not in line, f"It cannot be run as it stands, and does not say why: {line}"


@pytest.mark.parametrize("page", sorted((DOCS / "extending").glob("*.md")), ids=lambda page: page.stem)
def test_toml_of_a_page_is_what_the_generator_writes(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnwise.cli.app import run

    monkeypatch.chdir(tmp_path)
    for block in pages.blocks(page):
        if block.language == "toml":
            assert run(["new-part", page.stem, "mine"]) == 0
            (written,) = tmp_path.rglob("pyproject.toml")
            shown = tomllib.loads(block.text)["project"]["entry-points"]
            assert shown == tomllib.loads(written.read_text("utf-8"))["project"]["entry-points"]


def test_pages_with_toml_are_those_of_parts() -> None:
    found = {page for page in PAGES if any(b.language == "toml" and not b.title for b in pages.blocks(page))}
    assert found == {page for page in (DOCS / "extending").glob("*.md") if page.name != "README.md"}


def test_commands_are_read_with_what_is_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run (two, three): they wait -->\n\n    turnwise one  # why\n    turnwise two \\\n      --more\n\ntext\n\n"
        "    no command\n\n```\n$ turnwise four\nsaid\n```\n<!-- not run: it waits -->\n```console\n$ make five\n```\n"
    )
    four, five, one = pages.commands(page)
    assert one.lines[0] == "turnwise one"
    assert [one.runs(line) for line in one.lines] == [True, False]
    assert four.lines == ("turnwise four",)
    assert five.runs("make five") is False


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
