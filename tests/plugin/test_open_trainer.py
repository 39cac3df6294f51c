"""A stranger's package fills every open seam with parts that learn or remember: required, trained, killed, resumed."""

from __future__ import annotations

import html
import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import forked
import pytest
from forked import PYTEST, TURNWISE
from outside import environment, install, run, turnwise

pytest.importorskip("torch")
from safetensors.torch import load_file
from torch import equal

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parent / "open_trainer"
RECIPE = """
suite: test/letters
seed: 5
device: cpu
model: {scratch: {layers: 1, width: 64, heads: 2, init: random, vocab_size: 300, context: 128, text_episodes: 10}}
engine: {kind: torch, max_sequences: 16}
sampling: {max_tokens: 6, tools: none}
rollout: {groups: 3, group_size: 4, concurrency: 16, sampler: counting}
guide: [again]
source: [{name: fading, weight: 0.5}]
teacher: slow
reward: {name: from_signal, signal: promise, weight: 0.1}
shape: [halved]
loss: [clip, {name: margin, weight: 0.05}]
schedule: {loss.margin.weight: shrinking, optimizer.learning_rate: {name: cosine, to: 1.0e-4}}
optimizer: {learning_rate: 3.0e-3}
updates: 6
evaluate: {every: 3, dev: 4, test: 4}
checkpoint: {every: 1, keep: 6}
"""
CLOCK = ("seconds", "tokens_per_second")
PARTS = {
    "signal": "promise", "shape": "halved", "sampler": "counting", "guide": "again", "source": "fading",
    "teacher": "slow", "loss": "margin", "schedule": "shrinking",
}  # fmt: skip
"""By kind, the name of each of the package's parts."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("open-trainer")
    install(home / "site", "turnwise_open", {"__init__.py": (PACKAGE / "turnwise_open.py").read_text()})
    install(home / "site", "with_letters", {"__init__.py": "import letters\nletters.register_letters()\n"})
    (home / "open.yaml").write_text(RECIPE)
    (home / "test_parts.py").write_text((PACKAGE / "test_parts.py").read_text())
    return home


def test_it_has_under_300_lines_with_its_tests() -> None:
    assert sum(len(file.read_text().splitlines()) for file in PACKAGE.glob("*.py")) < 300


def test_it_does_what_is_required(home: Path) -> None:
    done = run(PYTEST, "-q", "-p", "no:cacheprovider", "test_parts.py", cwd=home)
    assert done.returncode == 0, done.stdout


def test_the_command_line_checks_every_part(home: Path) -> None:
    done = turnwise(home, "check", "site/turnwise_open/__init__.py", "--json")
    assert done.returncode == 0, done.stderr
    checked = json.loads(done.stdout)["components"]
    assert {one["kind"]: one["name"] for one in checked} == PARTS
    for one in checked:
        assert one["ok"], one
        assert one["package"] == "turnwise-open"
        assert len(one["requirements"]) >= 5


@pytest.mark.parametrize(("kind", "name"), PARTS.items())
def test_it_is_listed_with_ours(home: Path, kind: str, name: str) -> None:
    """With all that is said of ours, and the package that it comes with."""
    rows = {row["name"]: row for row in json.loads(turnwise(home, "list", kind, "--json").stdout)}
    assert rows[name]["package"] == "turnwise-open"
    ours = [row for row in rows.values() if row["package"] == "turnwise"]
    assert ours
    assert all(row.keys() == rows[name].keys() for row in ours)


def told(text: str) -> set[str]:
    """The lines in which an explanation names the package's parts, as it names ours, with their options."""
    lines = {line.strip().partition("(")[0] for line in text.splitlines()}
    return {f"{kind}: {name}" for kind, name in PARTS.items() if f"{kind}: {name}" in lines}


def test_it_is_explained(home: Path) -> None:
    explained = turnwise(home, "explain", "open.yaml").stdout
    assert told(explained) == {f"{kind}: {name}" for kind, name in PARTS.items() if kind != "schedule"}
    for said in (
        "A running mean of the policy's weights.",
        "Σ_s w_s·[ℓ_nll(s)]",
        "loss.margin.weight: 0.05 at first, then by shrinking(by=0.9)",
        "changes the objective: failures count half",
    ):
        assert said in explained


def figures(run: Path) -> list[dict[str, Any]]:
    """What each update measured, clocks aside."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if not key.endswith(CLOCK)} for row in rows]


def _check_the_report(run: Path) -> None:
    """It names every part, with its options and what it does, and draws what those that measure have measured."""
    shown = html.unescape(re.sub("<[^>]+>", "\n", (run / "report.html").read_text()))
    assert told(shown) == {f"{kind}: {name}" for kind, name in PARTS.items() if kind != "schedule"}
    assert "by shrinking(by=0.9)" in shown
    for figure in ("promise error", "promise seen", "source/fading/nll", "margin"):
        assert figure in shown.splitlines()


@pytest.mark.slow
def test_killed_and_resumed_it_ends_where_it_would_have_ended(home: Path) -> None:
    """The weights, the head, the teacher and every remembered number, to the last bit."""
    whole = turnwise(home, "train", "open.yaml", "--out", "whole", "--no-preflight")
    assert whole.returncode == 0, whole.stderr
    killed = home / "killed"
    command = ("train", "open.yaml", "--out", "killed", "--no-preflight")
    program = forked.Program(TURNWISE, command, cwd=home, env=environment(home), training=True)
    process = program.process
    metrics = killed / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and len(metrics.read_text().splitlines()) >= 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL, "the run was over before it was killed"
    program.close()
    resumed = turnwise(home, "train", "open.yaml", "--out", "killed", "--no-preflight", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    _check_the_report(home / "whole")
    assert "resumed after update" in resumed.stderr
    assert figures(killed) == figures(home / "whole")
    last = [
        max((run / "checkpoints").iterdir(), key=lambda one: one.name) for run in (killed, home / "whole")
    ]
    assert last[0].name == last[1].name
    compared = 0
    for file in sorted(last[1].rglob("*.safetensors")):
        mine, theirs = load_file(last[0] / file.relative_to(last[1])), load_file(file)
        assert mine.keys() == theirs.keys()
        assert all(equal(mine[name], theirs[name]) for name in theirs), file
        compared += len(theirs)
    assert compared > 20
    remembered = [json.loads((one / "state.json").read_text()) for one in last]
    assert remembered[0]["parts"] == remembered[1]["parts"]
    assert {"sampler/counting", "source/fading", "loss/margin", "signal/promise", "schedule"} <= {
        *remembered[0]["parts"]
    }
