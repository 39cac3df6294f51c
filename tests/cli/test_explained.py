"""What was explained once is told again without torch, until anything that decides it has changed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.cli import explained, training
from turnwise.cli.explained import kept_answer
from turnwise.trainers.recipe import load

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "suite: shop/quick\nmodel: {scratch: {}}\nupdates: 20\n"
NOT_LOADED = {"torch", "numpy", "pydantic", "gymnasium", "turnwise.trainers.recipe.load"}


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """An empty cache and folder, and what was checked since."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    explained.code_state.cache_clear()
    checked: list[object] = []
    true = load.load_recipe

    def counted(source: Any, *rest: Any) -> Any:
        checked.append(source)
        return true(source, *rest)

    monkeypatch.setattr(load, "load_recipe", counted)
    Path("mine.yaml").write_text(RECIPE)
    return checked


@pytest.mark.slow
def test_while_explaining_torch_leaves_out_what_only_compiling_needs(tmp_path: Path) -> None:
    program = (
        "import importlib.util, json, sys\nfrom turnwise.cli.app import run\nrun(['explain', 'shop-quick', '--json'])\n"
        "def names(): return len(vars(sys.modules['torch._meta_registrations']))\n"
        "before = names()\nimportlib.util.find_spec('torch._dynamo')\nprint(json.dumps([before, names()]))\n"
        "import torch\nprint(torch.kthvalue(torch.empty(3, device='meta'), 1).values.device)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    before, after = json.loads(done.stdout.splitlines()[1])
    assert before < 20
    assert after > 100
    assert done.stdout.splitlines()[2] == "meta"


@pytest.mark.slow
def test_a_second_explanation_is_the_first_and_loads_no_torch(tmp_path: Path) -> None:
    program = (
        "import json, sys\nfrom turnwise.cli.app import run\n"
        "code = run(['explain', 'shop-quick', '--set', 'loss.clip.high=0.25', '--json'])\n"
        "print(code, json.dumps(sorted(sys.modules)))"
    )
    said: list[str] = []
    loaded: list[set[str]] = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        )  # fmt: skip
        answer, modules = done.stdout.splitlines()
        code, _, names = modules.partition(" ")
        assert code == "0"
        said.append(answer)
        loaded.append({*json.loads(names)})
    assert said[0] == said[1]
    assert "high=0.25" in json.loads(said[1])["text"]
    assert "torch" in loaded[0]
    assert not loaded[1] & NOT_LOADED


def test_what_has_changed_is_explained_anew(checks: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def said(*changes: str) -> str:
        return training.explain("mine.yaml", set_=list(changes)).value["text"]

    first = said()
    assert said() == first
    assert len(checks) == 1
    assert "rloo" in said("credit=rloo")
    assert said("credit=rloo") == said("credit=rloo")
    assert len(checks) == 2
    Path("mine.yaml").write_text(RECIPE.replace("20", "30"))
    assert "then 30 updates" in said()
    assert len(checks) == 3
    explained.code_state.cache_clear()
    monkeypatch.setattr(explained, "_versions", lambda: iter(["another"]))
    assert "then 30 updates" in said()
    assert len(checks) == 4


def test_a_changed_file_of_code_or_of_the_recipe_is_another_question(
    checks: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "package"
    (code / "inner").mkdir(parents=True)
    (code / "inner" / "part.py").write_text("1")
    (code / "inner" / ".#part.py").symlink_to("an editor's lock")
    monkeypatch.setattr(explained, "_files", lambda folder: explained._code_in(str(code)))
    Path("mine.yaml").write_text(RECIPE + "source: [{name: stored, path: there}]\n")
    explained.code_state.cache_clear()
    places = [kept_answer("mine.yaml", {})]
    os.utime(code / "inner" / "part.py", (0, 0))
    explained.code_state.cache_clear()  # as in another process
    assert kept_answer("mine.yaml", {}) == places[0]  # it is the content that counts
    (code / "inner" / "part.py").write_text("2")
    explained.code_state.cache_clear()
    places.append(kept_answer("mine.yaml", {}))
    Path("there").mkdir()
    places.append(kept_answer("mine.yaml", {}))
    monkeypatch.chdir(tmp_path / "package")
    places.append(kept_answer("../mine.yaml", {}))
    assert None not in places
    assert len({*places}) == 4


def test_what_the_installer_explains_ahead_is_told_from_any_folder(
    checks: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("install", ROOT / "scripts" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    monkeypatch.setattr(load, "recipe_names", lambda: ["shop-quick"])
    exec(install.EXPLAIN_AHEAD, {})  # noqa: S102
    assert len(checks) == 1
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "Objective" in training.explain("shop-quick").value["text"]
    assert len(checks) == 1
    Path("shop").mkdir()
    Path("shop/quick").touch()  # a file that the recipe's suite may mean here
    training.explain("shop-quick")
    assert len(checks) == 2


def test_a_bias_that_was_computed_since_is_shown(checks: list[object]) -> None:
    small = ["rollout.group_size=2"]
    assert training.explain("mine.yaml", set_=small).value["bias"] == {}
    computed = training.explain("mine.yaml", set_=small, bias=True).value
    assert computed["bias"]
    assert training.explain("mine.yaml", set_=small).value == computed
    assert len(checks) == 3


@pytest.mark.parametrize(
    "changes",
    [{"agent": {"command": ["x"]}}, {"rollout.opponents": {"a": "scripted:gold"}}, {"rollout": {"opponents": {"a": "b"}}}],
)  # fmt: skip
def test_what_looks_at_more_than_files_is_not_kept(checks: list[object], changes: dict[str, Any]) -> None:
    assert kept_answer("mine.yaml", {}) is not None
    assert kept_answer("mine.yaml", changes) is None


@pytest.mark.parametrize("text", ["", "{", '{"answer": 1}', "[]"])
def test_a_damaged_answer_is_given_anew(checks: list[object], text: str) -> None:
    first = training.explain("mine.yaml").value
    kept = kept_answer("mine.yaml", {})
    assert kept is not None
    kept.file.write_text(text)
    assert training.explain("mine.yaml").value == first
    assert len(checks) == 2


def test_a_cache_that_cannot_be_written_is_done_without(
    checks: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("a file where the folder should be")
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path / "file"))
    assert training.explain("mine.yaml").value == training.explain("mine.yaml").value
    assert len(checks) == 2


def test_the_oldest_answers_go(checks: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explained, "MOST", 2)
    for updates in (20, 30, 40):
        training.explain("mine.yaml", set_=[f"updates={updates}"])
    kept = kept_answer("mine.yaml", {})
    assert kept is not None
    assert len([*kept.file.parent.iterdir()]) == 2


def test_a_recipe_that_is_wrong_is_refused_each_time(checks: list[object]) -> None:
    from turnwise.errors import RecipeError

    Path("mine.yaml").write_text(RECIPE + "no_such_key: 1\n")
    for _ in range(2):
        with pytest.raises(RecipeError, match="no_such_key"):
            training.explain("mine.yaml")
