"""The examples run as they stand, and so do the programs on the pages about agents and the API."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import forked
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
SAID = {
    "evaluate_and_compare": "40 of 40 episodes",
    "evaluate_api_model": "20 of 20 episodes (60 turns) replay byte for byte",
    "first_episode": "It ended with solved and the score 1.0",
    "mcp_tools": "3 scarves: yes",
    "own_agent_loop": "a loop of one's own: 1.0",
    "own_credit_rule": "credit: late(share=0.2)",
    "own_environment": "test: gold 100%",
}
TINY = {
    "model.scratch.layers": 2, "warm_start.episodes": 48, "rollout.groups": 2, "rollout.group_size": 2, "updates": 1,
    "evaluate.every": 1, "evaluate.dev": 4, "evaluate.test": 4,
}  # fmt: skip
TRAINING = {  # what each says at the end of a run that was made small
    "distill": "distill",
    "learn_offline": "without playing",
    "self_play": "trained against itself",
    "train_in_two_minutes": "everything in",
}
ELSEWHERE = {
    "agent_program": "gateway/test_programs.py",
    "plain_agent": "gateway/test_training.py",
    "web_application": "test_examples.py",
}
"""What needs more than to be run, and where it is."""
MOST_LINES = 60
IMPORT = re.compile(r"^\s*(?:>>> )?(?:from (turnwise[\w.]*) import|import (turnwise[\w.]*))", re.MULTILINE)
EXTENSION_POINTS = {
    "turnwise.envs.acting",
    "turnwise.envs.games.kuhn",
    "turnwise.envs.games.probe",
    "turnwise.envs.web.actions",
    "turnwise.envs.web.env",
    "turnwise.envs.web.sessions",
    "turnwise.envs.worlds.speaking.server",
    "turnwise.registry",
    "turnwise.tools.calls",
    "turnwise.tools.core",
    "turnwise.tools.mcp_client",
    "turnwise.tools.sandbox",
    "turnwise.tools.sandbox.registry",
}
"""What pages name beside ``turnwise``, for those who write environments."""


def run(code: str, folder: Path) -> str:
    program = forked.Program(code, (), cwd=folder, env={**os.environ}, training=True)
    out, err = program.communicate(timeout=280)
    assert program.process.returncode == 0, out + err
    return out


def test_every_example_is_run() -> None:
    assert sorted([*SAID, *TRAINING, *ELSEWHERE]) == EXAMPLES
    assert not [
        name for name, test in ELSEWHERE.items() if name not in (ROOT / "tests" / test).read_text("utf-8")
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text("utf-8").splitlines()) < MOST_LINES


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    if name == "own_credit_rule":
        pytest.importorskip("torch")
    assert SAID[name] in run(forked.script(ROOT / "examples" / f"{name}.py"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINING)
def test_a_training_example_runs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = f"import {name}; {name}.main('run', **{TINY!r})"
    said = run(f"import sys; sys.path.insert(0, {str(ROOT / 'examples')!r})\n{program}", tmp_path)
    assert TRAINING[name] in said
    assert [*(tmp_path / "run").rglob("report.html")]


@pytest.mark.slow
def test_the_example_of_a_web_application_runs(browser: None, tmp_path: Path) -> None:
    assert "gold: 100%" in run(forked.script(ROOT / "examples/web_application.py"), tmp_path)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    cells = json.loads((ROOT / "examples/credit.ipynb").read_text("utf-8"))["cells"]
    (tmp_path / "notebook.py").write_text(
        "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    )
    said = run(forked.script(tmp_path / "notebook.py"), tmp_path)
    assert "return_to_go" in said
    assert "as worked by hand" in said


@pytest.mark.slow
def test_the_programs_about_agents_run(tmp_path: Path) -> None:
    page = (ROOT / "docs/your-own-agent.md").read_text("utf-8")
    source = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    (tmp_path / "page.py").write_text(source)
    said = run(forked.script(tmp_path / "page.py"), tmp_path).splitlines()
    assert said[1:] == ["1.0", "4"]


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
             *(f"examples/{name}.py" for name in EXAMPLES)]
)  # fmt: skip
def test_what_a_page_imports_is_public(page: str) -> None:
    named = {one or other for one, other in IMPORT.findall((ROOT / page).read_text("utf-8"))}
    assert named <= {"turnwise", *EXTENSION_POINTS}
