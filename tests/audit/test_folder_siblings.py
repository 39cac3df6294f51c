"""`audit tasks` on task folders: siblings of kinds of defect that a drawn set brought up and detectors had missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.audit import task_folders

from turnwise.envs.swe.importers import instance_of, read_folder
from turnwise.trainers.audit.core import AuditFinding
from turnwise.trainers.audit.registry import audit_all
from turnwise.trainers.audit.task_sets.broken_setup import broken_setup
from turnwise.trainers.audit.task_sets.no_assertion import no_assertion
from turnwise.trainers.audit.xray.core import (
    Attempt,
    Judged,
    ProbedSet,
    ProbedTask,
    TaskSet,
    Verdict,
    XrayCost,
    XTask,
)
from turnwise.trainers.audit.xray.folders import product_shown, recognised, without_an_answer
from turnwise.trainers.audit.xray.likeness import Likeness
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.reading import probe
from turnwise.trainers.audit.xray.swe_rows import findings

_BUG, _FIX = "print(sum([1250, 730]))\n", "print(sum([1250, 730, 4188]))\n"
_ON_A_BRANCH = {
    "instruction.md": "/app/total.py leaves out the last order. Repair it.\n",
    "environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\nCOPY . /app/\n"
    "RUN git init -q . && git config user.email a@b.c && git config user.name a && git add -A && git commit -qm start && "
    "git checkout -qb later && sed -i 's/730/730, 4188/' total.py && git commit -qam 'all orders' && git checkout -q -\n",
    "environment/total.py": _BUG,
    "solution/solve.sh": f"cat > /app/total.py <<'END'\n{_FIX}END\n",
    "tests/test_total.py": "def test_total():\n    assert ('4188' in open('/app/total.py').read(), 'the last order')\n",
}


@pytest.mark.sandbox
def test_a_repair_on_another_branch_is_a_shown_answer_and_an_asserted_tuple_is_no_assertion(tmp_path):
    task_folders.write(tmp_path, "task", _ON_A_BRANCH)
    made = audit_all("tasks", probe(str(tmp_path), XrayOptions()), [""]).findings
    (one,) = made["answer_shown"].data["tasks"]
    assert "history holds /app/total.py" in one["seen"]
    assert "all orders" in one["seen"]
    (one,) = made["no_assertion"].data["tasks"]
    assert "is paid" in one["seen"]


def told(audit: Callable[[ProbedSet], AuditFinding], agent: str, verdict: Verdict) -> Any:
    """Give one verdict on one agent to an audit, and return what it names."""
    task = XTask("a", "a", "Sum up.")
    source = TaskSet("a", "task folders", [task], [], 1, lambda asked: [], lambda n: XrayCost(n, n, n, 0.0))
    probed = ProbedTask(task, [Judged(Attempt(agent, "true"), "plain", verdict)])
    return audit(ProbedSet(source, [probed])).data["tasks"]


def test_no_test_that_was_collected_is_no_assertion_unless_the_agent_saw_to_that():
    none = Verdict(1.0, tests={"collected": 0}, trace={"reached": {}, "had": 0})
    assert len(told(no_assertion, "no-op", none)) == 1
    assert not told(no_assertion, "skip", none)


def test_a_test_that_breaks_before_it_runs_is_a_broken_set_up_also_where_the_log_is_silent():
    assert len(told(broken_setup, "gold", Verdict(0.0, tests={"error": 1, "passed": 2}))) == 1
    assert not told(broken_setup, "gold", Verdict(0.0, tests={"failed": 1, "passed": 2}))
    assert not told(broken_setup, "gold", Verdict(1.0, tests={"error": 1, "passed": 2}))


_ROW = {"instance_id": "a", "repo": "b/c", "base_commit": "abcdef1", "problem_statement": "Give a list.", "PASS_TO_PASS": [], "test_patch": "",
        "patch": "--- a/here.py\n+++ b/here.py\n@@ -1 +1 @@\n-got = 0\n+got = list\n", "FAIL_TO_PASS": ["tests/test_a.py::test_all"]}  # fmt: skip
_CAUGHT = "    try:\n        assert got() == [1]\n    except AssertionError:\n        print('differs')\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (_CAUGHT, True),
        ("    assert (got(), [1])\n", True),
        ("    assert 'always'\n", True),
        ("    assert (got(), [1])\n    assert got()\n", False),
        (_CAUGHT.replace("print", "pytest.fail"), False),
        (_CAUGHT.replace("AssertionError", "ValueError"), False),
        (_CAUGHT + "    with pytest.raises(KeyError):\n        got(1)\n", False),
        ("    for _ in range(3):\n        try:\n            assert got()\n            break\n        except AssertionError:\n            wait()\n    else:\n        raise TimeoutError\n", False),
    ],
)  # fmt: skip
def test_an_assertion_that_holds_whatever_is_done_is_none(body, found):
    lines = f"from here import got\n\n\ndef test_all():\n{body}".splitlines()
    patch = (
        "diff --git a/tests/test_a.py b/tests/test_a.py\n--- /dev/null\n+++ b/tests/test_a.py\n"
        + f"@@ -0,0 +1,{len(lines)} @@\n"
    )
    row = _ROW | {"test_patch": patch + "".join(f"+{line}\n" for line in lines)}
    assert ("no_assertion" in dict(findings(instance_of(row)))) is found


def test_a_repair_of_one_short_line_is_shown_where_an_issue_holds_it_as_a_patch():
    asked = {"Set got = list.": False, "Proposed change:\n\n-got = 0\n+got = list\n": True}
    for issue, shown in asked.items():
        row = _ROW | {"problem_statement": issue}
        assert ("answer_shown" in dict(findings(instance_of(row)))) is shown


def test_words_without_an_answer_are_tried_the_instruction_and_a_programs_own_in_a_comment(tmp_path):
    made = read_folder(task_folders.write(tmp_path, "task", _ON_A_BRANCH))
    tried = {attempt.label: attempt.text for attempt, _ in without_an_answer(made, {"/app/total.py": _FIX})}
    assert {*tried} == {"the instruction itself in /app/total.py", "the words of /app/total.py in a comment"}
    assert "# print(sum([1250, 730, 4188]))\n" in tried["the words of /app/total.py in a comment"]
    assert not [
        *without_an_answer(made, {"/app/word.txt": "the last order\n"})
    ]  # the instruction holds the answer


def test_lines_selected_from_a_file_that_the_instruction_names_are_no_shown_answer():
    words, chosen = "copper\nashore\njasmine\nkettle\noak\nlantern\n", "copper\njasmine\nkettle\nlantern\n"
    prompt = "Write the words of /app/words.txt that have an e or an a to /app/long.txt."
    assert not product_shown("/app/long.txt", chosen, prompt, {"/app/words.txt": words})
    assert product_shown("/app/long.txt", chosen, prompt, {"/app/old.txt": words})
    assert product_shown("/app/long.txt", chosen, prompt, {"/app/words.txt": chosen})


@pytest.mark.parametrize(("path", "known"), [("/app/.oracle/run", True), ("/app/README.md", False)])
def test_a_solution_of_one_short_line_is_recognised_in_a_file_that_is_named_like_one(path, known):
    assert recognised("#!/bin/bash\ncd /app\nwc -l < a.log > b.txt\n", path) is known
    assert recognised("grep -c 'status 500' server.log | tee /app/errors.txt\n", path)


def test_a_task_with_the_same_files_tests_and_solution_is_one_in_any_words():
    task = XTask(
        "a",
        "a",
        "Write each long word, in order.",
        (),
        "grep -E '.{7}' w | sort > o",
        {},
        {"/w": "a"},
        {"t.py": "assert o"},
    )
    other = task._replace(id="b", prompt="Which words of w have seven letters? Put them into o.")
    known = Likeness()
    known.add(task)
    assert known.find(other) is not None
    assert known.find(other._replace(hidden={"t.py": "assert not o"})) is None
    assert known.find(other._replace(visible={"/w": "b"})) is None
    assert known.find(other._replace(row={"dockerfile": "FROM debian"})) is None
    assert known.find(other._replace(truth="", hidden={})) is None
