"""A package outside of the repository with a component of every kind: listed, checked, explained, trained, resumed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from forked import PYTEST
from outside import install, run, turnwise

pytest.importorskip("torch")

from turnwise.kinds import KINDS
from turnwise.scaffold import part_source

pytestmark = pytest.mark.slow

TEST = """import pytest
from turnwise.registry import KINDS, get_component
from turnwise.requirements import requirements

ALL = [(kind, name) for kind in KINDS for name in requirements(kind) if not name.startswith("conforms")]

@pytest.mark.parametrize(("kind", "name"), ALL)
def test_what_is_required(kind, name):
    requirements(kind)[name](get_component(kind, "own"))
"""
RECIPE = """
suite: test/letters
seed: 3
device: cpu
model: {scratch: {layers: 1, width: 64, heads: 2, init: random, vocab_size: 300, context: 128, text_episodes: 10}}
engine: {kind: own, max_sequences: 16}
sampling: {max_tokens: 6, tools: own}
rollout: {groups: 3, group_size: 4, concurrency: 16, sampler: own, strategy: own}
guide: [own]
source: [{name: own, weight: 0.5}]
teacher: {name: own, top: 2}
judge: own
reward: {name: own, cost: 0.02}
filter: own
shape: [own]
credit: capo
correction: {name: own, cap: 3.0}
loss: [own, {name: distill, weight: 0.01}]
schedule: {loss.distill.weight: {name: own, every: 1}, reward.cost: {name: towards, metric: distill, target: 0.1}}
reduce: {name: own, tokens: 100}
optimizer: {learning_rate: 3.0e-3}
sinks: [tensorboard, own]
updates: 2
evaluate: {every: 1, dev: 4, test: 4}
checkpoint: {every: 1}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in ``site``, and the environment of tests/letters.py as a second plugin."""
    home = tmp_path_factory.mktemp("every-kind")
    sources = {f"{kind}.py": part_source(kind, "own") for kind in KINDS}
    modules = ", ".join(KINDS)
    install(home / "site", "every_kind", {**sources, "__init__.py": f"from . import {modules}\n"})
    (home / "test_parts.py").write_text(TEST)
    install(home / "site", "with_letters", {"__init__.py": "import letters\nletters.register_letters()\n"})
    return home


def test_it_has_under_20_lines_a_kind_with_its_tests(home: Path) -> None:
    files = [*(home / "site" / "every_kind").glob("*.py"), home / "test_parts.py"]
    assert len(files) == len(KINDS) + 2
    assert sum(len(file.read_text().splitlines()) for file in files) < 20 * len(KINDS)


@pytest.mark.parametrize("kind", ["credit", "engine", "policy", "sandbox", "dialect", "sink"])
def test_it_is_listed_with_its_package(home: Path, kind: str) -> None:
    done = turnwise(home, "list", kind, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["package"] for row in json.loads(done.stdout)}
    assert rows.pop("own") == "every-kind"
    assert set(rows.values()) == {"turnwise"}


def test_it_does_what_is_required(home: Path) -> None:
    done = run(PYTEST, "-q", "-p", "no:cacheprovider", "test_parts.py", cwd=home)
    assert " failed" not in done.stdout, done.stdout
    assert done.returncode in (0, 1), done.stdout


def test_it_is_checked_explained_trained_and_resumed(home: Path) -> None:
    checked = turnwise(home, "check", "credit/own", "--json")
    assert json.loads(checked.stdout)["components"][0]["package"] == "every-kind", checked.stderr
    (home / "own.yaml").write_text(RECIPE)
    explained = turnwise(home, "explain", "own.yaml", "--set", "credit=own", "judge=none")
    assert "own" in explained.stdout, explained.stderr
    trained = turnwise(home, "train", "own.yaml", "--out", "run", "--no-preflight")
    assert trained.returncode == 0, trained.stderr
    first = figures(home / "run")
    assert len((home / "run" / "own.jsonl").read_text().splitlines()) == 2
    shutil.rmtree(max((home / "run" / "checkpoints").iterdir()))
    resumed = turnwise(home, "train", "own.yaml", "--out", "run", "--no-preflight", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed after update 1" in resumed.stderr
    assert figures(home / "run") == first


def figures(run: Path) -> list[list[float]]:
    """What each update measured, clocks aside."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [[row["update"], row["reward"], row["tokens"], row.get("grad_norm", 0.0)] for row in rows]


def test_a_run_is_evaluated_by_its_policy(home: Path) -> None:
    done = turnwise(home, "eval", "test/letters", "--policy", "own", "--episodes", "4", "--json")
    assert json.loads(done.stdout)["policy"] == "own", done.stderr


SINK = """from turnwise import component
@component("sink", "{name}")
class Mine:
    "Takes the figures and forgets them."
"""


def test_two_plugins_of_one_name_are_told_and_the_others_are_there(tmp_path: Path) -> None:
    for package, name in (
        ("first", "mine"),
        ("second", "mine"),
        ("third", "tensorboard"),
        ("zz_last", "other"),
    ):
        install(tmp_path / "site", package, {"__init__.py": SINK.format(name=name)})
    install(tmp_path / "site", "broken", {"__init__.py": "import no_such_library\n"})
    done = turnwise(tmp_path, "list", "sink", "--json")
    rows = {row["name"]: row["package"] for row in json.loads(done.stdout)}
    assert {name: package for name, package in rows.items() if package != "turnwise"} == {
        "mine": "first",
        "other": "zz-last",
    }
    assert rows["tensorboard"] == "turnwise"
    said = " ".join(done.stderr.split())
    assert "The plugin 'second' (second) is left out: " in said
    assert (
        "sink 'mine' of second (second.Mine) is taken by first (first.Mine). → Choose another name." in said
    )
    assert "The plugin 'third' (third) is left out: " in said
    assert "The plugin 'broken' (broken) is left out: " in said
    asked = turnwise(tmp_path, "check", "sink/nowhere")
    assert "There is no sink 'nowhere'." in asked.stderr
    assert "it comes with a plugin that failed to load: 'broken'" in asked.stderr
