"""Functions have at most 60 lines, files at most 400; a longer one is one idea, which is named here."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_IN_A_FUNCTION, MOST_IN_A_FILE = 60, 400
FUNCTIONS: dict[str, str] = {
    "agents/hosting/routes.py add_routes": "the routes of a host, a short function each",
    "agents/remote/vllm_worker.py _transfer": "a class that is made where its base, which is vLLM's, can be imported",
    "envs/code/contest/intervals.py nested_spans": "one problem of a contest: statement, inputs, two solutions",
    "envs/code/contest/networks.py common_boss": "one problem of a contest",
    "envs/code/contest/networks.py falling_bridges": "one problem of a contest",
}
FILES: dict[str, str] = {
    "agents/gateway/sessions.py": "one session's conversations",
    "agents/policies/served/answers.py": "one reader of what servers answer",
    "agents/policies/served/policy.py": "one policy: a request and its answer",
    "src/turnwise/fault.py": "whose fault it is, in one place",
    "agents/evaluation/evaluate.py": "one evaluation: its play and its figures",
    "envs/core.py": "the environment contract",
    "envs/returned.py": "what an author's methods may return",
    "envs/toolworld/users.py": "one user",
    "agents/core.py": "the vocabulary of agents",
    "agents/tokens/renderer.py": "messages ⇄ tokens",
    "trainers/recipe/compatible.py": "which choices go together",
    "trainers/run/trainer.py": "one run, update by update",
    "agents/remote/server.py": "one server of an engine",
    "agents/remote/transfer.py": "weights over shared memory and TCP: both ends beside each other",
    "agents/remote/vllm_transfer.py": "weights between GPUs: both ends beside each other",
    "benchmarks/engine_kills.py": "one campaign",
    "benchmarks/faulting/trial.py": "one trial of each kind of fault",
    "benchmarks/foreign_alone.py": "packages by their own interfaces, one class each",
    "benchmarks/gpu.py": "one prepared script",
    "envs/code/contest/arrays.py": "problems of one kind",
    "envs/code/contest/networks.py": "problems of one kind",
    "envs/code/contest/numbers.py": "problems of one kind",
    "envs/code/contest/texts.py": "problems of one kind",
    "envs/dialogue/vocabulary.py": "the words of conversations",
    "envs/functioncall/answers.py": "one reader of answers",
    "envs/lab/actions.py": "all actions of the lab",
    "envs/search/forms.py": "the forms of questions",
    "envs/worlds/one_command.py": "one reader of commands",
    "src/turnwise/registry.py": "one registry",
    "src/turnwise/watchdog.py": "interrupts, whose parts rest on each other",
    "tools/notations.py": "the notations of actions",
    "trainers/lab/help_bias.py": "one measurement",
    "trainers/learn/learner.py": "one update, step by step",
    "trainers/recipe/algorithms.py": "one table of algorithms",
    "trainers/others/trl.py": "the settings of one trainer",
    "trainers/others/verl.py": "the settings of one trainer",
    "trainers/recipe/no_effect.py": "which keys change nothing",
    "trainers/recipe/schema.py": "the keys of a recipe",
    "trainers/run/collect.py": "the play of one update, from its plan to the groups that count",
    "scripts/changed_tests.py": "one graph: which file depends on which",
    "trainers/view/server.py": "the routes of the viewer",
}


def sources() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [n for n in listed.stdout.split() if not n.startswith("tests/") and (ROOT / n).is_file()]


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function and the lines of its body without its docstring; a signature is an interface and not length."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            told = ast.get_docstring(node) is not None
            body = node.body[1:] if told else node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {name: (ROOT / name).read_text("utf-8") for name in sources()}


def test_functions_are_short(texts: dict[str, str]) -> None:
    long = {
        f"{file} {name}": lines
        for file, text in texts.items()
        if text.count("\n") > MOST_IN_A_FUNCTION
        for name, lines in functions(text)
        if lines > MOST_IN_A_FUNCTION
    }
    assert {name: lines for name, lines in long.items() if name not in FUNCTIONS} == {}, (
        "cut it into its steps"
    )
    assert not set(FUNCTIONS) - set(long), "these are short now: take them out of the table"


def test_a_long_file_is_one_idea(texts: dict[str, str]) -> None:
    long = {file: lines for file, text in texts.items() if (lines := text.count("\n")) > MOST_IN_A_FILE}
    assert {name: lines for name, lines in long.items() if name not in FILES} == {}, (
        "cut it by idea, or name the idea in the table"
    )
    assert not set(FILES) - set(long), "these are short now: take them out of the table"


def test_lines_are_those_of_the_body() -> None:
    assert [
        *functions('def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    return (\n        1\n    )\n')
    ] == [("f", 3)]
