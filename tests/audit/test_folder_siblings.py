"""`audit tasks` on task folders: siblings of kinds of defect that a drawn set brought up and detectors had missed."""

from __future__ import annotations

import pytest
from tests.audit import task_folders

from turnwise.envs.swe.importers import read_folder
from turnwise.trainers.audit.registry import audit_all
from turnwise.trainers.audit.task_sets.no_assertion import no_assertion
from turnwise.trainers.audit.xray.core import Attempt, Judged, ProbedSet, ProbedTask, TaskSet, Verdict, XrayCost, XTask
from turnwise.trainers.audit.xray.folders import product_shown, recognised, without_an_answer
from turnwise.trainers.audit.xray.likeness import Likeness
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.reading import probe

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
    findings = audit_all("tasks", probe(str(tmp_path), XrayOptions()), [""]).findings
    (told,) = findings["answer_shown"].data["tasks"]
    assert "history holds /app/total.py" in told["seen"]
    assert "all orders" in told["seen"]
    (told,) = findings["no_assertion"].data["tasks"]
    assert "gold is paid" in told["seen"] or "no-op is paid" in told["seen"]


def test_no_test_that_was_collected_is_no_assertion_unless_the_agent_saw_to_that():
    def found(agent: str):
        judged = Judged(Attempt(agent, "true"), "plain", Verdict(1.0, tests={"collected": 0}, trace={"reached": {}, "had": 0}))
        task = XTask("a", "a", "Sum up.")
        source = TaskSet("a", "task folders", [task], [], 1, lambda asked: [], lambda n: XrayCost(n, n, n, 0.0))
        return no_assertion(ProbedSet(source, [ProbedTask(task, [judged])])).data["tasks"]

    assert len(found("no-op")) == 1
    assert not found("skip")


def test_words_without_an_answer_are_tried_the_instruction_and_a_programs_own_in_a_comment(tmp_path):
    made = read_folder(task_folders.write(tmp_path, "task", _ON_A_BRANCH))
    tried = {attempt.label: attempt.text for attempt, _ in without_an_answer(made, {"/app/total.py": _FIX})}
    assert {*tried} == {"the instruction itself in /app/total.py", "the words of /app/total.py in a comment"}
    assert "# print(sum([1250, 730, 4188]))\n" in tried["the words of /app/total.py in a comment"]
    assert not [*without_an_answer(made, {"/app/word.txt": "the last order\n"})]  # the instruction holds the answer


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
    task = XTask("a", "a", "Write each long word, in order.", (), "grep -E '.{7}' w | sort > o", {}, {"/w": "a"}, {"t.py": "assert o"})
    other = task._replace(id="b", prompt="Which words of w have seven letters? Put them into o.")
    known = Likeness()
    known.add(task)
    assert known.find(other) is not None
    assert known.find(other._replace(hidden={"t.py": "assert not o"})) is None
    assert known.find(other._replace(visible={"/w": "b"})) is None
    assert known.find(other._replace(truth="", hidden={})) is None
