"""The environment through its real tools: gold, step rewards, forks, guidance, and what is not the agent's fault."""

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import turnwise.envs.swe
from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.messages import Message, without_guidance
from turnwise.envs.swe.actions import shortened
from turnwise.envs.swe.build import build
from turnwise.envs.swe.env import SweEnv, judged
from turnwise.envs.swe.packages import fetch, get_package, packages, tasks_file
from turnwise.envs.swe.reward import grade
from turnwise.envs.swe.suite import run_suite
from turnwise.envs.swe.tasks import in_split, load_instances
from turnwise.errors import InfraError, VerifierError
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall
from turnwise.tools.sandbox.registry import get_pool, isolated_backend

pytestmark = pytest.mark.usefixtures("sandboxed")
HERE = Path(turnwise.envs.swe.__file__).resolve().parent
SMALL = load_instances(HERE / "small.jsonl")
TASK = next(one for one in SMALL if one.where == "add")
SCRIPT = (
    "from purse import add\nassert add(['1.10', '2', '-0.60']) == 250\nassert add(['1', ' ', '2']) == 300\n"
)


def call(name, **arguments):
    return Message("assistant", "", (ToolCall(name, arguments, "call_0"),))


def repair(env):
    return env.step(call("create", path=TASK.edit.path, text=TASK.fixed()[TASK.edit.path].decode()))


@pytest.fixture
def playing():
    made = []

    def start(**options):
        made.append(SweEnv(**options))
        made[-1].reset(seed=0, options={"task": TASK.task()})
        return made[-1]

    yield start
    for env in made:
        env.close()


def test_gold_solves_five_tasks_through_the_tools(backend):
    env = SweEnv(backend=backend.name)
    for task in SMALL[:5]:
        walked = walk(env, task.task(), "gold")
        assert walked.success, walked.steps[-1]
        assert [action.tool_calls[0].name for action in walked.actions] == ["view", "edit", "submit"]
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("played", "clauses"),
    [
        ("swe/small", ["E1", "E4", "E6"]),
        pytest.param("swe/small", ["E5", "E7", "E8"], marks=pytest.mark.full),
        pytest.param("turnwise/SWE-v0", ["E1", "E4", "E5", "E6", "E7", "E8"], marks=pytest.mark.full),
    ],
)
def test_the_contract(played, clauses):
    """On the suite whose packages test quickly; in `make test-full` on all suites."""
    report = check_env(played, tasks=1, only=clauses)
    assert report.ok, str(report)


def test_step_rewards_wait_behind_the_gate(playing):
    env = playing()
    env.step(call("create", path="reproduce.py", text=SCRIPT))
    repair(env)
    before = env.fork()
    assert env.step(call("submit")).info["rewards"] == {"outcome": 1.0, "located": 0.1, "reproduced": 0.1}
    before.step(call("shell", command=f"echo >> {TASK.edit.path}; echo 'x = (' >> {TASK.edit.path}"))
    assert before.step(call("submit")).info["rewards"] == {"outcome": 0.0}
    before.close()


def test_the_same_repair_is_judged_once(playing, monkeypatch):
    judgements = []

    def counted(*given, **options):
        judgements.append(1)
        return grade(*given, **options)

    monkeypatch.setattr("turnwise.envs.swe.env.grade", counted)
    judged.cache_clear()
    for _ in range(2):
        env = playing()
        repair(env)
        assert env.step(call("submit")).info["end"] == "solved"
    assert len(judgements) == 1


def test_a_script_that_only_says_so_reproduces_nothing(playing):
    env = playing(rewards="direct")
    env.step(call("create", path="reproduce.py", text="raise AssertionError('assert 22 == 20')"))
    assert env.step(call("submit")).info["rewards"] == {"outcome": 0.0, "located": 0.0, "reproduced": 0.0}


@pytest.mark.parametrize(
    ("told", "paid"),
    [
        (("purse/sharing.py", "payments = []", "payments = list()"), 0.1),  # the caller itself
        (("purse/amounts.py", "total = 0", "total = 1"), 0.1),  # what the bug changed
        (
            ("purse/sharing.py", "each, left = divmod(cents, people)", "left, each = divmod(people, cents)"),
            0.0,
        ),
        (("purse/amounts.py", '"""Cents from', '"""Cents of'), 0.0),
    ],
)
def test_a_caller_that_nobody_told_of_a_change_is_a_place_of_the_repair(told, paid):
    """``where`` of a drift is that caller, which need not be in a file that the true repair changes."""
    env = SweEnv(rewards="direct")
    env.reset(seed=0, options={"task": dataclasses.replace(TASK, where="settle").task()})
    path, old, new = told
    env.step(call("edit", path=path, old=old, new=new))
    assert env.step(call("submit")).info["rewards"]["located"] == paid
    env.close()


def test_a_file_that_was_broken_is_no_place_that_was_found(playing):
    env = playing(rewards="direct")
    env.step(call("shell", command=f"echo 'x = (' > {TASK.edit.path}"))
    assert env.step(call("submit")).info["rewards"]["located"] == 0.0


def test_the_potential_is_the_share_of_tests_that_pass(playing):
    env = playing(shaping=1.0)
    step = repair(env)
    assert env.state.progress == 1.0
    assert step.info["rewards"]["progress"] == 1.0
    assert env.step(call("submit")).info["rewards"]["progress"] == -1.0


def test_a_fork_has_files_of_its_own(playing):
    env = playing()
    twin = env.fork()
    repair(twin)
    assert twin.state_key(twin.state) != env.state_key(env.state)
    assert env.step(call("submit")).info["end"] == "failed"
    assert twin.step(call("submit")).info["end"] == "solved"
    twin.close()


def test_a_submit_can_be_taken_back_where_the_suite_says_so(playing):
    env = playing()
    for again in (False, True):
        env.reset(seed=0, options={"task": TASK.task(review=True)})
        env.step(call("shell", command="sed -i 's/sign = -1/sign = 1/' purse/amounts.py"))
        said = env.step(call("submit"))
        assert said.info["end"] is None
        assert "of 1" not in said.observation[-1].content
        if again:
            repair(env)
            assert env.step(call("submit")).info["end"] is None
        assert env.step(call("submit")).info["end"] == ("solved" if again else "failed")


def test_an_edit_that_would_not_parse_is_not_made(playing):
    env = playing()
    before = env.state.files
    said = env.step(call("edit", path=TASK.edit.path, old="    total = 0\n", new="   total = 0\n"))
    assert "line 29: " in said.observation[-1].content
    assert "total = 0" in said.observation[-1].content
    assert env.state.files == before
    said = env.step(call("create", path="purse/new.py", text="def f(:\n"))
    assert "would not parse, line 1" in said.observation[-1].content
    env.step(call("shell", command="echo 'x = (' >> purse/sharing.py"))
    said = env.step(call("edit", path="purse/sharing.py", old="x = (", new="x = [("))  # half of a repair
    assert "Edited" in said.observation[-1].content


def test_a_long_output_keeps_the_failure():
    lines = [f"line {number}" for number in range(5000)]
    lines[2500] = "E       assert 22 == 20"
    told = shortened("\n".join(lines))
    assert len(told) < 13_000
    assert "E       assert 22 == 20" in told
    assert told.startswith("line 0\n")
    assert told.endswith("line 4999")
    assert told.count(" lines …]") == 2
    assert shortened("short") == "short"


def test_feedback_gives_one_more_attempt(playing):
    env = playing(guidance="feedback")
    said = env.step(call("submit"))
    assert said.info["end"] is None
    assert "<guidance>" in said.observation[-1].content
    assert without_guidance(said.observation[-1].content) == ""
    assert env.step(call("submit")).info["end"] == "failed"


def test_a_plan_says_where_not_what():
    env = SweEnv(guidance="plan")
    first, _ = env.reset(seed=0, options={"task": TASK.task()})
    assert f"`{TASK.where}` in {TASK.edit.path}" in str(first)
    assert TASK.edit.old not in str(first)
    env.close()


def test_a_missing_test_has_failed():
    asked = dataclasses.replace(TASK, pass_to_pass=(*TASK.pass_to_pass, "tests/test_amounts.py::test_gone"))
    verdict = grade(isolated_backend(), asked, asked.fixed())
    assert not verdict.resolved
    assert verdict.broken == ("tests/test_amounts.py::test_gone",)


def test_what_is_not_the_agents_fault_is_no_zero():
    hurried = dataclasses.replace(TASK, seconds=-0.999)  # 10 ms for the tests: nobody passes
    with pytest.raises(VerifierError, match="could not be judged"):
        grade(isolated_backend(), hurried, hurried.fixed())
    other = {**hurried.fixed(), TASK.edit.path: hurried.fixed()[TASK.edit.path] + b"\n"}
    with pytest.raises(VerifierError, match="nor do they with the true repair"):
        grade(isolated_backend(), hurried, other)


@pytest.mark.parametrize(("lost", "why"), [(1, "all tests pass"), (2, "the tests gave no answer")])
def test_a_sandbox_that_fails_while_judging_is_replaced_once(monkeypatch, lost, why):
    """After that it counts as the code's doing, unless the true repair fails as well."""
    left = [lost]

    def run(sandbox, *args, **kwargs):
        if left[0]:
            left[0] -= 1
            sandbox.close()
        return run_suite(sandbox, *args, **kwargs)

    monkeypatch.setattr("turnwise.envs.swe.reward.run_suite", run)
    right = {**TASK.fixed(), TASK.edit.path: TASK.fixed()[TASK.edit.path] + b"\n"}
    verdict = grade(isolated_backend(), TASK, right)
    assert (verdict.resolved, verdict.why) == (lost == 1, why)
    left[0] = 4
    with pytest.raises(VerifierError, match="nor do they with the true repair"):
        grade(isolated_backend(), TASK, right)


def test_splits_share_no_function():
    of = {split: {(one.package, one.where) for one in in_split(SMALL, split)} for split in Split}
    assert all(of.values())
    assert not of[Split.TRAIN] & of[Split.TEST]
    assert not of[Split.TRAIN] & of[Split.DEV]


def test_what_is_fetched_must_be_what_was_pinned(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path))
    package = get_package("jsonpointer")
    assert len(fetch(package)) > 10_000
    with pytest.raises(InfraError, match="another file"):
        fetch(package._replace(sha256="0" * 64))


def test_the_manifest_has_more_than_twelve_packages():
    assert sum(bool(package.file) for package in packages().values()) >= 12


@pytest.mark.slow
def test_tasks_are_made_and_solved_and_making_goes_on(tmp_path):
    out = tmp_path / "tasks.jsonl"
    assert build(isolated_backend(), ["purse"], 1, out, seed=5).total == 1
    with out.open("a") as file:
        file.write('{"package": "pur')  # interrupted here
    assert build(isolated_backend(), ["purse"], 1, out, seed=5).total == 1
    (made,) = load_instances(out)
    assert grade(isolated_backend(), made, made.fixed()).resolved
    assert not grade(isolated_backend(), made, made.broken()).resolved


@pytest.mark.parametrize(
    "task", load_instances(HERE / "sample.jsonl"), ids=lambda task: f"{task.package}-{task.where}"
)
def test_tasks_of_real_packages_are_solved_by_gold(task):
    env = SweEnv()
    assert walk(env, task.task(), "gold").success
    env.close()


def test_where_things_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path))
    assert tasks_file().parent == tmp_path / "swe"
    assert tasks_file() == tmp_path / "swe" / "tasks.jsonl"
    assert tasks_file("adopted") == tmp_path / "swe" / "adopted.jsonl"


def test_suites_of_made_tasks_are_there_when_the_tasks_are(tmp_path):
    names = (
        "import turnwise.envs.registry as r; print([s.name for s in r.suites() if s.name.startswith('swe/')])"
    )
    environment = {**os.environ, "TURNWISE_CACHE": str(tmp_path)}
    told = [subprocess.check_output([sys.executable, "-c", names], env=environment, text=True)]
    (tmp_path / "swe").mkdir()
    (tmp_path / "swe" / "tasks.jsonl").touch()
    told.append(subprocess.check_output([sys.executable, "-c", names], env=environment, text=True))
    always = "['swe/hard', 'swe/history', 'swe/small']\n"
    assert told == [
        always,
        "['swe/built', 'swe/hard', 'swe/hidden', 'swe/history', 'swe/reviewed', 'swe/small']\n",
    ]


@pytest.mark.docker
def test_back_ends_agree(working):
    verdicts = [
        grade(working(name), TASK, TASK.broken() | {"purse/new.py": b"x = 1\n"}, count=True)
        for name in ("bubblewrap", "docker")
    ]
    assert verdicts[0][:4] == verdicts[1][:4]


def test_episodes_take_their_sandboxes_from_a_warm_pool(backend):
    pool = get_pool(backend.name)
    env = SweEnv(backend=backend.name)
    env.reset(seed=0, options={"task": TASK.task()})
    while not pool.waiting():
        time.sleep(0.01)  # one more is started in the background
    (waiting,) = [one for ready in pool._ready.values() for one in ready][:1]
    twin = env.fork()
    assert isinstance(twin, SweEnv)
    assert twin._box is waiting
    twin.close()
    env.close()
