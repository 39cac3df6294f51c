"""Tasks out of a third party's MCP server: the contract holds, and what was not asked for is not paid."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from lazily import needs

from turnwise.envs.check.command import check_env
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import register
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

needs("mcp")
SOURCE = Path(__file__).with_name("git_tasks.py")


@pytest.fixture(scope="module")
def kind():
    spec = importlib.util.spec_from_file_location("git_tasks", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GitTasks


@pytest.fixture
def env(kind):
    made = kind()
    made.reset(seed=0, options={"task": kind.generate(derive_rng(1), Split.TRAIN)})
    yield made
    made.close()


def say(env, *calls):
    made = tuple(ToolCall(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(calls))
    return env.step(Message("assistant", "", made))


def test_an_environment_of_a_foreign_server_takes_forty_lines():
    source = SOURCE.read_text()
    body = source[source.index("class GitTasks") :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 40


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept(kind, monkeypatch):
    monkeypatch.syspath_prepend(str(SOURCE.parent))
    register("test/Git-v0", "git_tasks:GitTasks", "Commits.")
    report = check_env("test/Git-v0", tasks=2)
    assert report.ok, str(report)


@pytest.mark.slow
def test_gold_solves_and_several_calls_may_stand_in_one_message(env):
    plan = [(call.name, dict(call.arguments)) for call in env.plan(env.task)]
    step = say(env, *plan)
    assert [message.tool_call_id for message in step.observation] == ["c0", "c1", "c2", "c3", "c4"]
    assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)


def test_a_commit_of_everything_is_not_what_was_asked(env):
    plan = [(call.name, dict(call.arguments)) for call in env.plan(env.task)]
    plan[2] = ("git_add", {"repo_path": "/work", "files": ["."]})
    step = say(env, *plan)
    assert (step.reward, step.info["end"]) == (0.0, EndReason.FAILED)


@pytest.mark.slow
def test_forks_have_worlds_of_their_own(env):
    plan = [(call.name, dict(call.arguments)) for call in env.plan(env.task)]
    say(env, *plan[:3])
    twin = env.fork()
    assert say(twin, plan[3], plan[4]).info["end"] is EndReason.SOLVED
    status = say(env, ("git_status", {"repo_path": "/work"})).observation[0].content
    assert "Changes to be committed" in status  # the twin's commit is not here
    twin.close()


def test_errors_of_the_server_are_observations_and_paths_are_hidden(env):
    step = say(env, ("git_status", {"repo_path": "/work/nowhere"}))
    assert step.info["end"] is None
    assert "turnwise-mcp" not in step.observation[0].content
    step = env.step("What now?")
    assert step.info["bad_action"]
    assert "git_commit" in step.observation[0].content
