"""A domain given as files in tau-bench's manner loads, is checked and is played."""

import json
import shutil
from pathlib import Path

import pytest

from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.registry import make
from turnwise.envs.toolworld.files.tasks import file_tasks
from turnwise.envs.toolworld.knobs import FileDomainKnobs
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, derive_rng

FOLDER = Path(__file__).parent / "toolworld_files"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "library")


def edit(folder, name, change):
    data = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(change(data)))


def test_tasks_of_both_dialects_load_and_their_actions_solve_them():
    tasks = file_tasks(FileDomainKnobs(data=str(FOLDER)))
    assert len(tasks) == 3
    env = make("turnwise/ToolWorld-v0")
    for task in tasks:
        walked = walk(env, task, "gold")
        assert walked.success, walked.steps[-1]
    assert env.tools[0].spec.name == "find_user"
    assert "library" in walked.first[0].content


def test_a_conversation_by_hand():
    env = make("turnwise/ToolWorld-v0")
    env.reset(seed=0, options={"task": file_tasks(FileDomainKnobs(data=str(FOLDER)))[0]})
    assert env.step("What is your e-mail?").observation[0].content == "It is ana@example.org."
    assert "L1" in env.step("find_loans[ana]").observation[0].content
    assert "2026-03-01" in env.step("get_loan[L1]").observation[0].content
    failed = env.step("renew[L2]")
    assert failed.info["bad_action"]
    assert "renewed is True" in failed.observation[0].content
    env.step("find_user[ana@example.org]")
    env.step("I will renew Dune. Shall I proceed?")
    env.step("renew[L1]")
    step = env.step("Done: you have it until April 1, 2026.")
    assert (step.info["end"], step.reward) == (EndReason.SOLVED, 1.0)


def test_a_task_that_doing_nothing_solves_is_refused(folder):
    edit(folder, "tasks.json", lambda tasks: [{**tasks[2], "outputs": []}])
    with pytest.raises(EnvError, match="doing nothing solves it"):
        file_tasks(FileDomainKnobs(data=str(folder)))


def test_an_action_that_fails_is_an_error(folder):
    edit(
        folder,
        "tasks.json",
        lambda tasks: [{**tasks[0], "actions": [{"name": "renew", "kwargs": {"loan": "L2"}}]}],
    )
    with pytest.raises(EnvError, match="renewed is True"):
        file_tasks(FileDomainKnobs(data=str(folder)))


def test_changed_files_are_noticed(folder):
    task = file_tasks(FileDomainKnobs(data=str(folder)))[0]
    edit(folder, "db.json", lambda db: {**db, "users": {}})
    with pytest.raises(EnvError, match="have changed"):
        make("turnwise/ToolWorld-v0").reset(seed=0, options={"task": task})


@pytest.mark.parametrize("name", ["db.json", "policy.md", "tools.json", "tasks.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(EnvError, match=name):
        file_tasks(FileDomainKnobs(data=str(folder)))


def test_a_suite_of_files_draws_tasks_by_split(folder):
    many = lambda tasks: [
        {**tasks[2], "id": n, "opening": f"Case {n}: what is the fee of L3?"} for n in range(40)
    ]
    edit(folder, "tasks.json", many)
    cls = type(make("turnwise/ToolWorld-v0"))
    drawn = {
        split: {cls.generate(derive_rng(split, i), split, data=str(folder)).id for i in range(30)}
        for split in Split
    }
    assert drawn[Split.TRAIN]
    assert not drawn[Split.TRAIN] & drawn[Split.TEST]
