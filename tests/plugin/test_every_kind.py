"""A package outside of the repository with a component of every kind: listed, checked, explained, trained, resumed."""

from __future__ import annotations

import ast
import json
import signal
import socket
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import forked
import pytest
from forked import PYTEST, TURNWISE
from outside import environment, install, run, turnwise

pytest.importorskip("torch")

from turnwise.agents.remote.client import Address, RemoteServer
from turnwise.errors import EngineError
from turnwise.kinds import KINDS
from turnwise.scaffold import part_source

pytestmark = pytest.mark.slow

TEST = """import pytest
from turnwise.kinds import KINDS
from turnwise.registry import get_component
from turnwise.requirements import check_component

SLOW = ("engine", "sandbox")  # `turnwise check` takes half a minute for each

@pytest.mark.parametrize("kind", sorted(set(KINDS).difference(SLOW)))
def test_what_is_required(kind):
    report = check_component(get_component(kind, f"own_{kind}"))
    assert report.ok, report.to_json()
"""
MODULES = {
    "trainer": tuple(KINDS)[: tuple(KINDS).index("sink") + 1],
    "agents": ("engine", "model", "policy", "context"),
    "tools": ("dialect", "sandbox"),
}
RECIPE = """
suite: test/letters
seed: 3
device: cpu
model: {scratch: {layers: 1, width: 64, heads: 2, init: random, vocab_size: 300, context: 128, text_episodes: 10}}
engine: {kind: own_engine, max_sequences: 16}
sampling: {max_tokens: 6, tools: own_dialect}
rollout: {groups: 3, group_size: 4, concurrency: 16, sampler: own_sampler, strategy: own_strategy}
guide: [own_guide]
proposer: [{name: own_proposer, keep: 1}]
source: [{name: own_source, weight: 0.5}]
teacher: {name: own_teacher, top: 2}
filter: own_filter
shape: [own_shape]
correction: {name: own_correction, cap: 3.0}
loss: [own_loss, {name: distill, weight: 0.01}]
reduce: {name: own_reduce, tokens: 100}
optimizer: {learning_rate: 3.0e-3}
schedule: {loss.distill.weight: {name: own_schedule, every: 1}}
phases:
  - {name: own, updates: 2, set: {credit: own_credit, reward: {name: own_reward, cost: 0.02}}}
  - name: asked
    updates: 2
    set: {credit: capo, judge: own_judge, reward: {name: from_signal, signal: own_signal_size, weight: 0.1}}
sinks: [tensorboard, own_sink]
evaluate: {every: 2, dev: 4, test: 4}
checkpoint: {every: 1, keep: 4}
"""
EXPLAINED = [
    kind
    for kind in KINDS
    if kind not in ("model", "policy", "context", "sandbox", "search", "sink", "dialect")
]
"""What decides what a run optimises; the others are listed, checked, used and evaluated. A context stands beside no guide or source."""


def compose(kinds: tuple[str, ...]) -> str:
    """The scaffolds of these kinds in one module, as somebody would write them down: what they import, then they."""
    names: dict[str, set[str]] = defaultdict(set)
    bodies: list[str] = []
    for kind in kinds:
        source = part_source(kind, f"own_{kind}")
        lines = source.splitlines()
        imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in imports:
            whole = {alias.name for alias in node.names}
            names[node.module if isinstance(node, ast.ImportFrom) else ""] |= whole
        bodies.append("\n".join(lines[imports[-1].end_lineno :]).strip())
    head = [f"import {name}" for name in sorted(names.pop("", ()))]
    head += [f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(names.items())]
    return "\n".join(head) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in ``site``, and the environment of tests/letters.py as a second plugin."""
    home = tmp_path_factory.mktemp("every-kind")
    sources = {f"{module}.py": compose(kinds) for module, kinds in MODULES.items()}
    install(home / "site", "every_kind", {**sources, "__init__.py": f"from . import {', '.join(MODULES)}\n"})
    (home / "test_parts.py").write_text(TEST)
    (home / "own.yaml").write_text(RECIPE)
    install(home / "site", "with_letters", {"__init__.py": "import letters\nletters.register_letters()\n"})
    return home


def each(home: Path, *commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """What commands of one process answer as JSON."""
    program = (
        f"import sys\nfrom turnwise.cli.app import run\nfor line in {commands!r}: run([*line, '--json'])"
    )
    done = run(program, cwd=home)
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), list[Any]()
    while text:
        answer, end = decoder.raw_decode(text)
        found.append(answer)
        text = text[end:].strip()
    assert len(found) == len(commands), done.stderr
    return found


def test_it_has_under_15_lines_for_each_kind_with_its_tests(home: Path) -> None:
    files = [*(home / "site" / "every_kind").glob("*.py"), home / "test_parts.py"]
    assert sorted(kind for kinds in MODULES.values() for kind in kinds) == sorted(KINDS)
    assert sum(len(file.read_text().splitlines()) for file in files) < 15 * len(KINDS)
    assert max(len(line) for file in files for line in file.read_text().splitlines()) <= 120


def test_it_is_listed_with_its_package(home: Path) -> None:
    for kind, listed in zip(KINDS, each(home, *(("list", kind) for kind in KINDS)), strict=True):
        rows = {row["name"]: row["package"] for row in listed}
        assert rows[f"own_{kind}"] == "every-kind", kind
        assert {name for name, package in rows.items() if package != "turnwise"} <= {
            f"own_{kind}",
            "own_engine",
        }


def test_its_own_tests_pass(home: Path) -> None:
    done = run(PYTEST, "-q", "-p", "no:cacheprovider", "test_parts.py", cwd=home)
    assert done.returncode == 0, done.stdout
    assert f"{len(KINDS) - 2} passed" in done.stdout


def test_every_kind_is_checked_on_the_command_line(home: Path) -> None:
    for kind, checked in zip(
        KINDS, each(home, *(("check", f"{kind}/own_{kind}") for kind in KINDS)), strict=True
    ):
        (report,) = checked["components"]
        assert (report["kind"], report["name"], report["package"]) == (kind, f"own_{kind}", "every-kind")
        failed = [name for name, result in report["requirements"].items() if result["ok"] is False]
        assert failed == [], (kind, report)


def test_all_of_it_is_explained(home: Path) -> None:
    explained = turnwise(home, "explain", "own.yaml")
    assert explained.returncode == 0, explained.stderr
    for kind in EXPLAINED:
        assert f"own_{kind}" in explained.stdout, kind


@pytest.fixture(scope="module")
def trained(home: Path) -> Path:
    """A run with a part of every kind that went through in one go."""
    done = turnwise(home, "train", "own.yaml", "--out", "whole", "--no-preflight")
    assert done.returncode == 0, done.stderr
    return home / "whole"


def test_killed_and_resumed_it_trains_with_all_of_it(home: Path, trained: Path) -> None:
    """A run that was killed has the figures of one that was not, to the last bit."""
    assert len((trained / "own_sink.jsonl").read_text().splitlines()) == 4
    command = ("train", "own.yaml", "--out", "killed", "--no-preflight")
    program = forked.Program(TURNWISE, command, cwd=home, env=environment(home), training=True)
    metrics = home / "killed" / "metrics.jsonl"
    while program.process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= 2):
        time.sleep(0.01)
    program.process.send_signal(signal.SIGKILL)
    assert program.process.wait(60) == -signal.SIGKILL, "the run was over before it was killed"
    program.close()
    resumed = turnwise(home, *command, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed after update" in resumed.stderr
    assert figures(home / "killed") == figures(trained)


def test_its_engine_serves_others(home: Path, trained: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    where = ("--port", str(port), "--device", "cpu", "--context-length", "128")
    command = ("serve-engine", str(trained), "--kind", "own_engine", *where)
    program = forked.Program(TURNWISE, command, cwd=home, env=environment(home), training=True)
    try:
        server, until = RemoteServer(Address(f"http://127.0.0.1:{port}", "")), time.monotonic() + 120
        while program.process.poll() is None and time.monotonic() < until:
            try:
                assert server.look().kind == "own_engine"
                break
            except EngineError:
                time.sleep(0.1)
        assert program.process.poll() is None
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(60) == 0
    finally:
        program.close()


def test_what_cannot_be_served_says_so(home: Path, trained: Path) -> None:
    refused = turnwise(home, "serve-engine", str(trained), "--kind", "remote")
    assert refused.returncode == 1
    assert "The engine 'remote' cannot be served to others" in " ".join(refused.stderr.split())
    unknown = turnwise(home, "serve-engine", str(trained), "--kind", "own_engin")
    assert "own_engine" in unknown.stderr


def figures(run: Path) -> list[list[float]]:
    """What each update measured, clocks aside."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [[row["update"], row["reward"], row["tokens"], row.get("grad_norm", 0.0)] for row in rows]


def test_a_run_is_evaluated_by_its_policy(home: Path) -> None:
    done = turnwise(home, "eval", "test/letters", "--policy", "own_policy", "--episodes", "4", "--json")
    assert json.loads(done.stdout)["policy"] == "own_policy", done.stderr


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
