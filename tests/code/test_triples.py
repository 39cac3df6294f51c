"""Code triples: what is accepted, and what solves them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.code import induction
from turnwise.envs.code.induction import Induction
from turnwise.envs.code.triples import ENV, SEED, Triple, arguments, propose_task, solve_task
from turnwise.envs.core import EndReason
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task

NEGATED = Induction("def f(x):\n    return -x", ("1", "2", "-3"), (-1, -2, 3), "the sign")
DOUBLE = Triple("def f(x):\n    return x + x", "[1]", [1, 1])


def said(task: Task, answer: str) -> dict[str, Any]:
    env = make(ENV, seconds=2.0)
    env.reset(seed=0, options={"task": task})
    step = env.step(answer)
    info = dict(step.info.get("details", {}))
    return {"solved": step.info.get("end") is EndReason.SOLVED, "paid": step.reward, **info}


def written(program: str, given: str) -> str:
    return f"```python\n{program}\n```\n```input\n{given}\n```"


@pytest.mark.usefixtures("sandboxed")
def test_a_proposal_is_accepted_where_three_runs_give_one_plain_output() -> None:
    task = propose_task("deduction", [SEED], 0)
    found = said(task, written("def f(x, y):\n    return [x * y]", "2, 3.5"))
    assert (found["solved"], found["paid"]) == (True, 1.0)
    assert found["triple"][:2] == ["def f(x, y):\n    return [x * y]", "2, 3.5"]
    for program, given in (
        ("import random\ndef f(x):\n    return random.random()", "1"),
        ("import time\ndef f(x):\n    return time.time_ns()", "1"),
        ("n = 0\ndef f(x):\n    global n\n    n += 1\n    return n", "1"),
        ("def f(x):\n    return 1 / x", "0"),
        ("def f(x):\n    return f", "0"),
        ("def f(x):\n    return 'a' * 10**6", "0"),
        ("def f(x):\n    while True: pass", "0"),
        ("def g(x):\n    return x", "0"),
        ("def f(x):\n    return x", "__import__('os')"),
    ):
        found = said(task, written(program, given))
        assert found == {"solved": False, "paid": 0.0}, program
    assert said(task, "```python\ndef f(x):\n    return x\n```") == {
        "solved": False,
        "paid": 0.0,
        "malformed": True,
    }
    assert said(task, str(task.gold))["solved"]


@pytest.mark.usefixtures("sandboxed")
def test_the_hidden_part_is_judged_by_its_value_and_an_input_by_what_it_gives() -> None:
    deduction, abduction = solve_task("deduction", DOUBLE), solve_task("abduction", DOUBLE)
    assert [
        said(deduction, f"```output\n{x}\n```")["solved"]
        for x in ("[1,1]", "[1, 1.0]", "(1, 1)", "[1]", "f(1)")
    ] == [True, False, False, False, False]
    assert [
        said(abduction, f"```input\n{x}\n```")["solved"] for x in ("[1]", "[1, 1]", "1", "", "[True]")
    ] == [True, False, False, False, False]
    assert said(abduction, "[1]") == {"solved": False, "paid": 0.0, "malformed": True}
    for task in (deduction, abduction):
        assert said(task, str(task.gold))["solved"]
        assert str(task.gold).split("\n")[1] not in task.prompt.replace(DOUBLE.program, "")


@pytest.mark.usefixtures("sandboxed")
def test_inputs_are_accepted_where_the_program_gives_the_same_for_all_of_them_in_every_run() -> None:
    task = induction.propose_task(DOUBLE, 0, 3)
    found = said(task, "```input\n[1, 2]\n\n 'a'\n3\n```\n```message\nIt doubles.\n```")
    assert (found["solved"], found["paid"]) == (True, 1.0)
    assert found["triple"] == [DOUBLE.program, ["[1, 2]", "'a'", "3"], [[1, 2, 1, 2], "aa", 6], "It doubles."]
    for lines in ("1\n2", "1\n2\nf(3)", "1\n2\nNone", "1\n2\nx"):
        assert said(task, f"```input\n{lines}\n```\n```message\nm\n```") == {"solved": False, "paid": 0.0}, (
            lines
        )
    chance = Triple("import random\ndef f(x):\n    return random.random()", "1", 0)
    for known, answer, malformed in (
        (chance, "```input\n1\n2\n3\n```\n```message\nm\n```", False),
        (DOUBLE, "```input\n1\n2\n3\n```", True),
        (DOUBLE, "```message\nm\n```", True),
    ):
        found = said(induction.propose_task(known, 0, 3), answer)
        assert not found["solved"]
        assert ("malformed" in found) is malformed
    assert said(task, str(task.gold))["solved"]


@pytest.mark.usefixtures("sandboxed")
def test_a_program_is_found_from_half_of_its_outputs_and_judged_by_all() -> None:
    task = induction.solve_task(NEGATED)
    assert task.prompt.startswith("the sign\n\nf(1) = -1\nf(2) = -2\n\nWhich f")
    lines = ("return -x", "return x * -1.0", "return -abs(x)", "return {1: -1, 2: -2}[x]")
    found = [said(task, f"```python\ndef f(x):\n    {line}\n```")["solved"] for line in lines]
    assert found == [True, False, False, False]
    assert said(task, "```python\ng = 1\n```") == {"solved": False, "paid": 0.0}
    assert said(task, "-x") == {"solved": False, "paid": 0.0, "malformed": True}
    assert said(task, str(task.gold))["solved"]
    described = [*suite_tasks(get_suite("triples:describe"), Split.TRAIN, 12)]
    induced = [*suite_tasks(get_suite("triples:induce"), Split.TRAIN, 40)]
    assert [one.success for one in played(described, "demonstrator")] == [True] * 12
    assert [one.success for one in played(induced[:8], "gold")] == [True] * 8
    assert 0.4 < sum(one.success for one in played(induced, "demonstrator")) / 40 < 0.98


@pytest.mark.usefixtures("sandboxed")
def test_small_triples_by_chance_are_what_execution_says_and_the_demonstrator_is_right_now_and_then() -> None:
    proposals = [*suite_tasks(get_suite("triples:propose"), Split.TRAIN, 12)]
    solved = [*suite_tasks(get_suite("triples:solve"), Split.TRAIN, 60)]
    assert [one.success for one in played(proposals, "demonstrator")] == [True] * 12
    assert [one.success for one in played(solved[:20], "gold")] == [True] * 20
    assert 0.5 < sum(one.success for one in played(solved, "demonstrator")) / 60 < 0.95
    assert {one.options["role"] for one in (*proposals, *solved)} == {
        f"{role} {ask}" for role in ("propose", "solve") for ask in ("deduction", "abduction")
    }


def played(tasks: Any, script: str) -> Any:
    return run_episodes([Request(task, n) for n, task in enumerate(tasks)], scripted(script))


def test_what_a_policy_says_gives_no_warnings() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert arguments("1or 2") is None
    assert not seen


def test_a_triple_by_chance_is_of_one_split_whatever_is_hidden_of_it() -> None:
    shown = {
        split: {
            tuple(one.options["triple"][:2]) for one in suite_tasks(get_suite("triples:solve"), split, 300)
        }
        for split in Split
    }
    assert min(map(len, shown.values())) > 50
    assert not shown[Split.TRAIN] & (shown[Split.DEV] | shown[Split.TEST])
    assert not shown[Split.DEV] & shown[Split.TEST]
    with pytest.raises(EnvError, match="triples:guess"):
        get_suite("triples:guess")
