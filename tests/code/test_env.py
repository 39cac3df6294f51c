"""The environment: turns, reward components, forks, traps, data sets, the quality of tests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import step_json, walk
from turnwise.envs.code.actions import read
from turnwise.envs.code.env import CodeEnv
from turnwise.envs.code.families.core import build_problem
from turnwise.envs.code.knobs import CodeKnobs
from turnwise.envs.code.problem import CodeCase, CodeProblem
from turnwise.envs.code.quick import slipped
from turnwise.envs.code.solver import wish_of
from turnwise.envs.code.tasks import task_of
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_task, suite_tasks
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.tools.core import ToolCall, ToolError

ENV = "turnwise/Code-v0"
ISOLATED = ("bubblewrap", "docker")
sandboxed = pytest.mark.usefixtures("sandboxed")


def quick(index: int = 0, split: Split = Split.TRAIN) -> Task:
    return suite_task(get_suite("code/quick"), split, index)


def python(index: int = 0) -> Task:
    return suite_task(get_suite("code/easy"), Split.TRAIN, index)


def episode(task: Task, *said: str, **options: Any) -> tuple[CodeEnv, list[Any]]:
    env = CodeEnv(**options)
    env.reset(seed=0, options={"task": task})
    return env, [env.step(text) for text in said]


@sandboxed
@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_holds() -> None:
    report = check_env(ENV, tasks=2)
    assert report.ok, str(report)


# --- turns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [("test sum ( xs ) .", "test", "sum ( xs )"), ("Thinking.\nsubmit [ x for x in xs ] .", "submit", "[ x for x in xs ]"),
     ("submit .", "submit", ""), ("submit", "submit", ""), ("```python\nx = 1\n```", "test", "x = 1"),
     ("run\n```py\nprint(1)\n```", "run", "print(1)"), ("```\na\n```\nno:\n```\nb\n```\nSubmit", "submit", "b"),
     ('<tool_call>{"name": "run", "arguments": {"code": "print(2)"}}</tool_call>', "run", "print(2)")],
)  # fmt: skip
def test_actions_are_read(text: str, name: str, code: str) -> None:
    assert read(Message("assistant", text)) == (name, code)


@pytest.mark.parametrize(
    "text",
    ["", "hello", "test", "test .", "tested x", "run", "submit " + "x" * 30_000, "test \x00", "run \ud800"],
)
def test_other_texts_are_answered(text: str) -> None:
    with pytest.raises(ToolError):
        read(Message("assistant", text))


PROGRAM = "```python\ndef f():\n    return 1\n```\n"


@pytest.mark.parametrize(
    ("said", "name"),
    [("Let me test it.\nSubmit comes later.", "test"), ("Submit will follow once the visible tests pass.", "test"),
     ("Action: submit", "submit"), ("**submit**", "submit"), ("- submit", "submit"), ("Please submit it.", "submit"),
     ("**Action:** `submit`", "submit"), ("Now submit the draft, please!", "submit"), ("submit()", "submit"),
     ("```\nsubmit\n```", "submit"), ("Shall I submit?", "test"), ("submit?", "test"), ("Run this experiment:", "run")],
)  # fmt: skip
def test_a_line_that_is_only_a_command_is_one_and_words_about_it_are_none(said: str, name: str) -> None:
    assert read(Message("assistant", PROGRAM + said)) == (name, "def f():\n    return 1")


@pytest.mark.parametrize(
    "said", ["Submit comes later.", "Submit will follow (once all 5 pass).", "I submit soon."]
)
def test_words_about_submitting_hand_nothing_in(said: str) -> None:
    env, (_, step) = episode(quick(), "test sum ( xs ) .", said)
    assert step.info["bad_action"]
    assert not env.state.submitted


@pytest.mark.parametrize("code", ["sum ( xs", "max xs", "xs", "0", "xs [ : : - 1 ]"])
def test_a_program_however_wrong_is_handed_in(code: str) -> None:
    assert read(Message("assistant", f"submit {code} .")) == ("submit", code)


@pytest.mark.parametrize(
    "code", ["```python\nx = 1\n```", "```\nx = 1\n```\n", "```python\nx = 1", "`x = 1`", "x = 1"]
)
def test_a_native_call_is_read_without_its_fences(code: str) -> None:
    assert read(Message("assistant", "", (ToolCall("submit", {"code": code}, "c"),))) == ("submit", "x = 1")


def test_fences_within_a_program_stay() -> None:
    code = "x = '''\n```\na\n```\n'''"
    assert read(Message("assistant", "", (ToolCall("test", {"code": code}, "c"),))).code == code


@pytest.mark.parametrize(
    "said",
    [f"{PROGRAM}test\n{PROGRAM}submit", f"{PROGRAM}test\nsubmit", "test[sum(xs)]\nsubmit", "test sum ( xs ) .\nsubmit .",
     (f"{PROGRAM}submit\n```json\n" '{"name": "run", "arguments": {"code": "x"}}\n```')],
)  # fmt: skip
def test_of_two_actions_in_a_message_none_is_carried_out(said: str) -> None:
    with pytest.raises(ToolError, match="this message has 2, and none was carried out"):
        read(Message("assistant", said))


def test_a_draft_is_tested_and_handed_in() -> None:
    env, _ = episode(quick(3))
    gold = env.gold(env.state).removeprefix("submit ")
    tested = env.step(f"test {gold}")
    assert "2 of 2 pass" in str(tested.observation)
    assert env.potential(env.state) == 1.0
    ended = env.step("submit .")
    assert ended.reward == 1.0
    assert ended.terminated
    assert ended.info.get("details") == {"hidden_passed": 8, "hidden": 8}


def test_nothing_is_submitted_without_a_draft() -> None:
    env, (step,) = episode(quick(), "submit .")
    assert step.info["bad_action"]
    assert not step.terminated
    assert env.state.draft == ""


def test_compiling_is_paid_once_and_progress_telescopes() -> None:
    task = quick(1)
    env, steps = episode(
        task, "test sum (", "test sum ( xs ) .", "test 1 + 1 .", "submit 0 .", compiles=0.25, shaping=0.5
    )
    paid = [step.info["rewards"].get("compiles", 0.0) for step in steps]
    assert paid == [0.0, 0.25, 0.0, 0.0]
    assert sum(step.info["rewards"]["progress"] for step in steps) == pytest.approx(0.0)
    assert env.state.submitted


def test_the_bound_of_a_quick_task_is_told_by_its_tests_only() -> None:
    tasks = [
        t
        for t in suite_tasks(get_suite("code/quick"), Split.TRAIN, 200)
        if t.options["origin"]["wish"][0] == "len" and t.options["origin"]["wish"][3] in (">", "<=")
    ]
    assert len(tasks) >= 4
    for task in tasks:
        *_, choose, bound = task.options["origin"]["wish"]
        other = {">": ">=", "<=": "<"}[choose]
        wrong = task.gold["solution"].replace(f"x {choose} {bound}", f"x {other} {bound}")
        _, (tested, ended) = episode(task, f"test {wrong} .", f"submit {wrong} .")
        assert "1 of 2" in str(tested.observation) or "0 of 2" in str(tested.observation)
        assert ended.reward == 0.0


def test_misreading_a_quick_task_fails_it() -> None:
    env, wrong, failed = CodeEnv(), 0, 0
    for index, task in enumerate(suite_tasks(get_suite("code/quick"), Split.TRAIN, 80)):
        env.reset(seed=0, options={"task": task})
        wish = wish_of(env.task)
        other = slipped(wish, derive_rng("slip", index))
        if other != wish:
            wrong += 1
            failed += env.step(f"submit {other.expression} .").reward == 0.0
    assert failed >= 0.97 * wrong > 30  # some of what differs means the same: the largest of x + 2 …


def test_the_demonstrator_leaves_something_to_learn() -> None:
    env = CodeEnv()
    scores = [
        walk(env, task, "demonstrator", seed=i).score
        for i, task in enumerate(suite_tasks(get_suite("code/quick"), Split.TRAIN, 200))
    ]
    assert 0.25 < sum(scores) / len(scores) < 0.7


@given(st.lists(st.sampled_from(["test sum ( xs ) .", "test xs .", "run 1 + 1 .", "nonsense", "submit .", "test (", "submit len ( xs ) ."]), min_size=1, max_size=6), st.integers(0, 20), st.integers(0, 5))  # fmt: skip
@settings(max_examples=60)
def test_forks_of_quick_tasks_go_on_alike(actions: list[str], index: int, at: int) -> None:
    env, _ = episode(quick(index))
    for turn, action in enumerate(actions):
        twin = env.fork() if turn == at else None
        step = env.step(action)
        if twin is not None:
            assert step_json(twin.step(action)) == step_json(step)
            assert twin.state == env.state
        if step.terminated or step.truncated:
            break


@pytest.mark.parametrize("backend", ISOLATED)
@given(codes=st.lists(st.sampled_from(["def {f}(*a): return 1", "print(2)\ndef {f}(*a): return a", "def {f}(", "import os; os._exit(3)"]), min_size=1, max_size=3), at=st.integers(0, 2))  # fmt: skip
@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_forks_in_sandboxes_go_on_alike(backend: str, codes: list[str], at: int) -> None:
    task = python(2)
    env, _ = episode(task, backend=backend)
    name = task.options["problem"]["entry"]
    for turn, code in enumerate(codes):
        said = f"{'run' if turn % 2 else 'test'}\n```python\n{code.replace('{f}', name)}\n```"
        moment, twin = env.snapshot(), env.fork() if turn == at else None
        step = env.step(said)
        if twin is not None:
            assert step_json(twin.step(said)) == step_json(step)
            env.restore(moment)
            assert step_json(env.step(said)) == step_json(step)


@sandboxed
def test_gold_tests_and_runs_in_a_sandbox() -> None:
    env, _ = episode(python(1))
    solution = env.task.gold["solution"]
    tested = env.step(f"```python\n{solution}\n```")
    assert "5 of 5 visible tests pass" in str(tested.observation)
    ran = env.step(f"run\n```python\nprint({env.task.options['problem']['entry']}.__name__ * 2)\n```")
    assert env.task.options["problem"]["entry"] * 2 in str(ran.observation)
    assert env.step("submit").reward == 1.0


@sandboxed
def test_wrong_programs_are_told_why() -> None:
    name = python(1).options["problem"]["entry"]
    env, (broken, wrong) = episode(
        python(1), "```\ndef f(:\n```", f"```\ndef {name}(*a):\n    return None\n```", seconds=120.0
    )
    env.seconds = 2.0
    slow = env.step(f"```\ndef {name}(*a):\n    while 1: pass\n```")
    assert "does not compile: SyntaxError" in str(broken.observation)
    assert "gave None, not" in str(wrong.observation)
    assert "took too long" in str(slow.observation)
    assert env.step("submit").reward == 0.0


def test_tests_that_contradict_the_specification_are_not_passed_by_heeding_them() -> None:
    """Row 81: visible tests that are wrong. Special-casing them passes them all, and scores 0."""
    right = build_problem("count_pairs", {"apart": 1, "modulus": 2, "how": "sum"}, visible=2, hidden=20)
    wrong = tuple(CodeCase(case.given, case.expected + 1) for case in right.visible)  # type: ignore[operator]
    task = task_of(
        CodeProblem(right.statement, right.entry, wrong, right.hidden, right.solution), CodeKnobs()
    )
    table = {repr(case.given[0]): case.expected for case in wrong}  # type: ignore[index]
    cheat = f"def count_pairs(xs):\n    return {table!r}.get(repr(xs), 0)"
    _, (tested, ended) = episode(task, f"```python\n{cheat}\n```", "submit", backend="process", unsafe=True)
    assert "2 of 2 visible tests pass" in str(tested.observation)
    assert ended.reward == 0.0
