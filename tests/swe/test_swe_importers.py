"""Formats of others, read as they are published."""

import json

import pytest

from turnwise.envs.swe.importers import judge_script, read_folder, read_instances
from turnwise.errors import TurnwiseError

ROW = {
    "instance_id": "pallets__flask-4045", "repo": "pallets/flask", "base_commit": "d8c37f", "version": "2.0",
    "patch": "diff --git a/src/flask/a.py b/src/flask/a.py\n", "problem_statement": "Raise an error.",
    "test_patch": "diff --git a/tests/test_b.py b/tests/test_b.py\n+x\n",
    "FAIL_TO_PASS": '["tests/test_b.py::test_dots"]', "PASS_TO_PASS": '["tests/test_b.py::test_other"]',
}  # fmt: skip


def test_swe_bench(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(ROW) + "\n\n")
    (one,) = read_instances(path)
    assert one.fail_to_pass == ("tests/test_b.py::test_dots",)
    assert one.test_files == ("tests/test_b.py",)
    assert one.image == "swebench/sweb.eval.x86_64.pallets_1776_flask-4045:latest"
    assert not one.reverse


def test_swe_gym_has_lists_and_images_of_its_own(tmp_path):
    lists = {"FAIL_TO_PASS": ["tests/test_b.py::test_dots"], "PASS_TO_PASS": []}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**ROW, **lists, "instance_id": "Project-MONAI__MONAI-3715"}))
    (one,) = read_instances(path)
    assert one.image == "xingyaoww/sweb.eval.x86_64.project-monai_s_monai-3715:latest"
    assert (one.fail_to_pass, one.reverse) == (("tests/test_b.py::test_dots",), False)


def test_swe_smith_patches_make_the_bug(tmp_path):
    row = {
        **ROW,
        "image_name": "jyangballin/swesmith.x86_64.x",
        "FAIL_TO_PASS": ["t.py::a"],
        "PASS_TO_PASS": [],
    }
    del row["test_patch"]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row))
    (one,) = read_instances(path)
    assert one.reverse
    assert one.image == "jyangballin/swesmith.x86_64.x"
    assert one.test_files == ("t.py",)


def test_what_is_no_instance_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(ROW) + '\n{"repo": "x"}\n')
    with pytest.raises(TurnwiseError, match="line 2"):
        list(read_instances(path))


def test_harbor(tmp_path):
    for name, text in {
        "task.toml": "version = '1.0'\n[verifier]\ntimeout_sec = 90.0\n[agent]\ntimeout_sec = 60.0\n",
        "instruction.md": "Write hello.txt.", "environment/Dockerfile": "FROM debian:12\n",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n", "solution/solve.sh": "echo hi > hello.txt\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    task = read_folder(tmp_path)
    assert (task.instruction, task.seconds, task.agent_seconds) == ("Write hello.txt.", 90.0, 60.0)
    assert list(task.tests) == ["test.sh"]
    assert "/tests/test.sh" in judge_script(task)


def test_terminal_bench(tmp_path):
    for name, text in {
        "task.yaml": "instruction: Do it.\nmax_agent_timeout_sec: 30\n", "Dockerfile": "FROM debian:12\n",
        "run-tests.sh": "pytest /tests\n", "tests/test_outputs.py": "def test_a(): pass\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    task = read_folder(tmp_path)
    assert task.script == "run-tests.sh"
    assert set(task.tests) == {"run-tests.sh", "test_outputs.py"}


def test_a_folder_that_is_no_task(tmp_path):
    with pytest.raises(TurnwiseError, match="no task"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("task.yaml", "# to be written\n", "task.yaml holds no settings"),
        ("task.yaml", "description: Do it.\n", "no text under `instruction`, but: description"),
        ("task.yaml", "instruction: [a\n", "task.yaml cannot be read"),
        (
            "task.yaml",
            "instruction: a\nmax_test_timeout_sec: soon\n",
            "'max_test_timeout_sec' of .* is 'soon'",
        ),
        ("task.toml", "[verifier\n", "task.toml cannot be read"),
        ("task.toml", "verifier = 90\n", "'verifier' of .* is '90', and no table"),
        ("task.toml", "[agent]\ntimeout_sec = -1\n", "'timeout_sec' of .* is '-1'"),
    ],
)
def test_a_task_that_is_half_written_is_refused_with_its_file_and_what_is_missing(tmp_path, name, text, said):
    for file in ("instruction.md", "Dockerfile", "run-tests.sh", "environment/Dockerfile"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("FROM debian:12\n")
    (tmp_path / name).write_text(text)
    with pytest.raises(TurnwiseError, match=said) as refused:
        read_folder(tmp_path)
    assert refused.value.remedy
