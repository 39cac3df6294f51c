"""Published benchmarks as they are: the whole file in order, one try, the original's tests and comparison."""

import json

import pytest

from turnwise.agents.rollout_tasks import requests_for
from turnwise.envs.check.walks import walk
from turnwise.envs.code.official import agrees
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.errors import EnvError
from turnwise.tasks.core import Split

HUMANEVAL = {
    "task_id": "Own/0", "entry_point": "halve", "prompt": "import math\n\n\ndef halve(x):\n    '''Half of x.'''\n",
    "canonical_solution": "    return x / 2\n",
    "test": "def check(candidate):\n    for n in range(3):\n        assert candidate(2 * n) == n\n    assert candidate(1) < math.pi\n",
}  # fmt: skip
MBPP = {
    "task_id": 11, "text": "Write a function to double.", "code": "def double(x):\n    return 2 * x", "test_setup_code": "import math",
    "test_list": ["assert double(1) == 2", "assert math.isclose(double(0.1), 0.2)", "assert double('a') == 'aa'"],
}  # fmt: skip
PLUS = {
    "task_id": "HumanEval/900", "entry_point": "halve", "prompt": HUMANEVAL["prompt"], "canonical_solution": "    return x / 2\n",
    "base_input": [[2]], "plus_input": [[3], [0.2]],
}  # fmt: skip
MBPP_PLUS = {
    "task_id": 2, "prompt": "Write a function to find what two share.", "code": "def similar_elements(a, b):\n    return tuple(set(a) & set(b))",
    "test_list": ["assert set(similar_elements((3, 4), (4,))) == {4}"],
    "test": "import numpy as np\ninputs = [[(3, 4), (4, 5)], [(1, 2), (2, 1)]]\nresults = [(4,), (1, 2)]\nfor i, (a, b) in enumerate(zip(inputs, results)):\n    pass\n",
}  # fmt: skip
LIVE = {
    "question_id": "q", "question_content": "Print the sum.", "starter_code": "", "metadata": "{}",
    "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
    "private_test_cases": json.dumps([{"input": "5 5\n", "output": "10\n", "testtype": "stdin"}]),
}  # fmt: skip


def suite_of(tmp_path, form, *rows):
    path = tmp_path / f"{form}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return get_suite(f"{form}:{path}")


def score(task, code):
    env = make(task.env)
    env.reset(options={"task": task})
    return env.step(f"```python\n{code}\n```")[1]


def test_every_problem_is_there_in_order_and_is_played_once_in_every_split(tmp_path):
    rows = [{**HUMANEVAL, "task_id": f"Own/{number}"} for number in range(12)]
    suite = suite_of(tmp_path, "humaneval", *rows)
    for split in Split:
        names = [task.options["origin"]["name"] for task in suite_tasks(suite, split, 12)]
        assert names == [row["task_id"] for row in rows]
    assert len([*requests_for(suite, "test", episodes=200, k=3)]) == 36


@pytest.mark.usefixtures("sandboxed")
def test_a_program_is_judged_by_the_original_tests_and_comparison(tmp_path):
    (task,) = suite_tasks(suite_of(tmp_path, "humaneval", HUMANEVAL), Split.TEST, 1)
    assert task.prompt.endswith(HUMANEVAL["prompt"])
    assert "candidate" not in task.prompt
    assert walk(make(task.env), task, "gold").success
    assert score(task, "def halve(x):\n    return x // 2") == 1  # 1 == 1.0, as the original has it
    assert score(task, "    return x / 2") == 1  # a continuation of the prompt
    assert score(task, "def halve(x):\n    return x") == 0
    assert score(task, "import sys\ndef halve(x):\n    sys.exit(0)") == 0


@pytest.mark.usefixtures("sandboxed")
def test_mbpp_tells_the_tests_that_judge(tmp_path):
    (task,) = suite_tasks(suite_of(tmp_path, "mbpp", MBPP), Split.TEST, 1)
    assert all(test in task.prompt for test in MBPP["test_list"])
    assert walk(make(task.env), task, "gold").success
    assert score(task, "def double(x):\n    return 2.0 * x") == 0


@pytest.mark.usefixtures("sandboxed")
def test_evalplus_and_livecodebench_are_judged_outside_of_the_program(tmp_path):
    plus, mbpp = suite_tasks(suite_of(tmp_path, "evalplus", PLUS, MBPP_PLUS), Split.TEST, 2)
    assert "similar_elements((3, 4), (4,))" in mbpp.prompt
    for task in (plus, mbpp):
        assert walk(make(task.env), task, "gold").success
    assert score(plus, "def halve(x):\n    return x * 0.5000000001") == 1  # near enough for floats
    assert score(plus, "def halve(x):\n    return x // 2") == 0
    assert (
        score(mbpp, "def similar_elements(a, b):\n    return list(set(a) & set(b))") == 1
    )  # compared as sets
    (live,) = suite_tasks(suite_of(tmp_path, "livecodebench", LIVE), Split.TEST, 1)
    assert score(live, "print(sum(map(float, input().split())))") == 1  # 3.0 is 3
    assert score(live, "print(3)") == 0


def test_rules_are_those_of_the_originals():
    for rule, entry, expected, value, right in (
        ("equal", "f", 1, True, True),
        ("equal", "f", [1], (1,), False),
        ("evalplus", "f", [0.3], [0.1 + 0.2], True),
        ("evalplus", "f", 1, 1.0000001, False),
        ("evalplus", "Diff", [1, 2], [2, 1], True),
        ("evalplus", "check_str", True, "match", True),
        ("lines", "", "1 2\n3\n", "1.0 2 \n3", True),
        ("lines", "", "a\nb", "a b", False),
        ("list", "f", [1], (1,), True),
        ("equal", "f", 1, {}, False),
    ):
        assert agrees(rule, entry, (), expected, value) == right, (rule, entry, expected, value)
    assert agrees("evalplus", "find_zero", ([-6, 3],), None, 2.0)
    assert not agrees("evalplus", "find_zero", ([-6, 3],), None, "x")


def test_a_file_of_another_form_says_which_it_may_be(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(MBPP))
    with pytest.raises(EnvError, match=r"x\.jsonl:1 is not a problem of humaneval: KeyError: 'prompt'"):
        get_suite(f"humaneval:{path}")
    with pytest.raises(EnvError, match=r"nowhere\.jsonl cannot be read"):
        get_suite("mbpp:/nowhere.jsonl")
