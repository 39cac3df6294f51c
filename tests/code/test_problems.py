"""Where problems come from: families and the quality of their tests, published data sets."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from turnwise.envs.check.walks import walk
from turnwise.envs.code.datasets import load_problems, read_asserts
from turnwise.envs.code.env import CodeEnv
from turnwise.envs.code.families.core import FAMILIES, get_template, templates
from turnwise.envs.code.knobs import CodeKnobs
from turnwise.envs.code.mutants import mutants
from turnwise.envs.code.problem import CodeCase
from turnwise.envs.code.quality import measure, summary
from turnwise.envs.code.tasks import task_of
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, derive_rng

HUMANEVAL: dict[str, Any] = {
    "task_id": "Own/0",
    "prompt": "def halve(xs):\n    '''Every second number of xs.'''\n",
    "canonical_solution": "    return xs[::2]\n",
    "test": "METADATA = {}\n\ndef check(candidate):\n    assert candidate([1, 2, 3]) == [1, 3]\n    assert candidate([]) == []\n"
    "    assert [7] == candidate([7])\n    assert candidate([4, 5]) == [4], 'why'\n    for n in range(3):\n        assert candidate(list(range(n))) is not None\n",
    "entry_point": "halve",
}
HUMANEVAL_NEAR: dict[str, Any] = {
    "task_id": "Own/1",
    "prompt": "def third(x):\n",
    "canonical_solution": "    return x / 3\n",
    "test": "def check(candidate):\n    assert abs(candidate(1) - 0.333333) < 1e-5\n    assert abs(candidate(6.0) - 2.0) < 1e-6\n    assert candidate(0) == 0.0\n",
    "entry_point": "third",
}
MBPP: dict[str, Any] = {
    "task_id": 7,
    "text": "Write a function to find the numbers that two tuples share.",
    "code": "def shared(a, b):\n  return tuple(sorted(set(a) & set(b)))",
    "test_list": [
        "assert shared((3, 4), (4, 5)) == (4,)",
        "assert set(shared((1, 2), (2, 1))) == set((1, 2))",
        "assert shared((1,), (2,)) == ()",
        "assert shared((9, 1, 4), (4, 9)) == (4, 9)",
    ],
    "test_setup_code": "",
    "challenge_test_list": [],
}
_PUBLIC = [{"input": "2 3\n", "output": "5\n", "testtype": "stdin"}]
_PRIVATE = [
    {"input": "10 -4\n", "output": "6\n", "testtype": "stdin"},
    {"input": "0 0\n", "output": "0", "testtype": "stdin"},
]


def packed(tests: object) -> str:
    """Private tests as LiveCodeBench packs them: JSON, pickled, deflated, in base64."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


LIVECODEBENCH: dict[str, Any] = {
    "question_id": "own_a",
    "question_content": "Print the sum of two numbers.",
    "starter_code": "",
    "public_test_cases": json.dumps(_PUBLIC),
    "private_test_cases": packed(_PRIVATE),
    "metadata": "{}",
}
LIVECODEBENCH_CALLS: dict[str, Any] = {
    "question_id": "own_b",
    "question_content": "Return how often x stands in xs.",
    "starter_code": "class Solution:\n    def count(self, xs, x):\n",
    "public_test_cases": json.dumps([{"input": "[1, 2, 1]\n1", "output": "2", "testtype": "functional"}]),
    "private_test_cases": json.dumps([{"input": "[]\n1", "output": "0", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "count"}),
}


sandboxed = pytest.mark.usefixtures("sandboxed")


# --- families, mutants, quality ----------------------------------------------------------------------


def test_there_are_families_enough() -> None:
    counts = {family: sum(t.family == family for t in templates().values()) for family in FAMILIES}
    assert len(counts) == 6
    assert min(counts.values()) >= 4


def test_mutants_differ_and_compile() -> None:
    source = "def f(xs):\n    n = 0\n    for x in xs[1:]:\n        if x > 2 and not x == 5:\n            n += 1\n    return n if n < 9 else -1\n"
    made = list(mutants(source))
    assert len(made) == len(set(made)) > 12
    for text in made:
        compile(text, "mutant", "exec")


@pytest.mark.parametrize(
    "name", ["pack_runs", "longest_stretch", "read_settings", "serve_queue", "walk_distances", "run_cache"]
)
def test_hidden_tests_expose_wrong_programs(name: str) -> None:
    template = get_template(name)
    found = measure(template, template.sample(derive_rng("quality test", name)))
    assert found.accepts
    assert found.wrong >= 15
    assert found.detection >= 0.95
    assert found.caught_visible <= found.caught


def test_rates_of_a_bank() -> None:
    template = get_template("count_out")
    rates = summary([measure(template, {"hop": 2, "growth": 0, "stop": 1})])["all"]
    assert rates["false_alarms"] == 0
    assert 0.95 <= rates["detection_rate"] <= 1.0


def test_unknown_knobs_and_templates_are_named() -> None:
    with pytest.raises(EnvError, match="hidden"):
        CodeEnv.generate(derive_rng("x"), Split.TRAIN, hiden=3)
    with pytest.raises(EnvError, match="families"):
        CodeEnv.generate(derive_rng("x"), Split.TRAIN, families=["structures"], levels=[1])


# --- data sets -------------------------------------------------------------------------------------


def jsonl(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "problems.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", "utf-8")
    return str(path)


def test_humaneval(tmp_path: Path) -> None:
    found = load_problems(jsonl(tmp_path, HUMANEVAL, HUMANEVAL_NEAR), "humaneval")
    first, near = found.problems["Own/0"], found.problems["Own/1"]
    assert [c.given for c in first.visible + first.hidden] == [([1, 2, 3],), ([],), ([7],), ([4, 5],)]
    assert (near.compare, near.visible[1]) == ("close", CodeCase((6.0,), 2.0))


def test_mbpp_keeps_what_it_can_read(tmp_path: Path) -> None:
    problem = load_problems(jsonl(tmp_path, MBPP), "mbpp").problems["7"]
    assert problem.entry == "shared"
    assert "shared" in problem.statement
    assert problem.hidden == (CodeCase(((1,), (2,)), ()), CodeCase(((9, 1, 4), (4, 9)), (4, 9)))


def test_livecodebench(tmp_path: Path) -> None:
    found = load_problems(jsonl(tmp_path, LIVECODEBENCH, LIVECODEBENCH_CALLS), "livecodebench").problems
    assert found["own_a"].mode == "stdin"
    assert found["own_a"].hidden[1] == CodeCase("0 0\n", "0")
    assert found["own_b"].entry == "Solution.count"
    assert found["own_b"].visible == (CodeCase(([1, 2, 1], 1), 2),)


class _Bomb:
    def __reduce__(self) -> Any:
        return (print, ("run by a pickle",))


def test_a_pickle_that_names_anything_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = base64.b64encode(zlib.compress(pickle.dumps(_Bomb()))).decode()
    with pytest.raises(EnvError, match=r"problems\.jsonl:1"):
        load_problems(jsonl(tmp_path, LIVECODEBENCH | {"private_test_cases": bad}), "livecodebench")
    assert capsys.readouterr().out == ""


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="form"):
        load_problems(jsonl(tmp_path, MBPP), "humaneval")
    with pytest.raises(EnvError, match="JSONL"):
        load_problems(str(tmp_path / "none.jsonl"), "mbpp")


def test_asserts_that_compare_no_literal_are_left_out() -> None:
    cases, _ = read_asserts(
        "assert f(x) == 1\nassert f(1) > 2\nassert f(1, k=2) == 3\nassert f(2)\nassert not f(3)", ("f",)
    )
    assert cases == [CodeCase((2,), True), CodeCase((3,), False)]


@sandboxed
def test_problems_of_data_sets_are_played(tmp_path: Path) -> None:
    rows = (LIVECODEBENCH, "print(sum(map(int, input().split())))"), (LIVECODEBENCH_CALLS, "class Solution:\n    def count(self, xs, x):\n        return xs.count(x)")  # fmt: skip
    for row, code in rows:
        (problem,) = load_problems(jsonl(tmp_path, row), "livecodebench").problems.values()
        load_problems.cache_clear()
        env = CodeEnv()
        env.reset(seed=0, options={"task": task_of(problem, CodeKnobs())})
        tested, ended = (env.step(text) for text in (f"```python\n{code}\n```", "submit"))
        assert "1 of 1" in str(tested.observation)
        assert ended.reward == 1.0
    knobs = {"dataset": jsonl(tmp_path, HUMANEVAL), "form": "humaneval"}
    for split in Split:
        try:
            task = CodeEnv.generate(derive_rng("d"), split, **knobs)
        except EnvError:
            continue
        assert walk(CodeEnv(), task, "gold").score == 1.0


def test_packed_tests_unpack(tmp_path: Path) -> None:
    row = LIVECODEBENCH | {
        "private_test_cases": packed([{"input": "1 1", "output": "2", "testtype": "stdin"}])
    }
    (problem,) = load_problems(jsonl(tmp_path, row), "livecodebench").problems.values()
    assert problem.hidden == (CodeCase("1 1", "2"),)
