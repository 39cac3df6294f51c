"""A third party's MCP server from npm is played end to end; skipped where there is neither node nor a network."""

import importlib.util
import shutil
from pathlib import Path

import pytest
from lazily import needs

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.registry import register
from turnwise.tasks.core import Split, derive_rng

needs("mcp")
SOURCE = Path(__file__).with_name("npm_tasks.py")


@pytest.fixture(scope="module")
def kind():
    spec = importlib.util.spec_from_file_location("npm_tasks", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if shutil.which("node") is None or not module.install():
        pytest.skip("no node, or npm cannot fetch the server")
    return module.FilingTasks


@pytest.mark.slow
def test_gold_solves_and_errors_are_observations(kind):
    env = kind()
    task = kind.generate(derive_rng(3), Split.TRAIN)
    walked = walk(env, task, "gold")
    assert walked.success
    assert str(task.options["count"]) in walked.steps[0].observation[0].content
    env.reset(seed=0, options={"task": task})
    missing = env.step(
        '<tool_call>{"name": "read_text_file", "arguments": {"path": "/work/none.txt"}}</tool_call>'
    )
    assert missing.info["end"] is None
    assert "none.txt" in missing.observation[0].content
    assert "turnwise-mcp" not in missing.observation[0].content  # the true place of the folder
    outside = env.step(
        '<tool_call>{"name": "read_text_file", "arguments": {"path": "/etc/hostname"}}</tool_call>'
    )
    assert "denied" in outside.observation[0].content
    done = env.step('<tool_call>{"name": "finish", "arguments": {}}</tool_call>')
    assert (done.reward, done.info["end"]) == (0.0, EndReason.FAILED)
    env.close()


def test_forks_have_folders_of_their_own(kind):
    env = kind()
    env.reset(seed=0, options={"task": kind.generate(derive_rng(4), Split.TRAIN)})
    env.step(env.gold(env.state))
    twin = env.fork()
    while env.now.end is None:
        last = env.step(env.gold(env.state))
    assert last.info["end"] is EndReason.SOLVED
    assert (
        twin.step('<tool_call>{"name": "finish", "arguments": {}}</tool_call>').info["end"]
        is EndReason.FAILED
    )
    env.close()
    twin.close()


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept(kind, monkeypatch):
    monkeypatch.syspath_prepend(str(SOURCE.parent))
    register("test/Filing-v0", "npm_tasks:FilingTasks", "Files notes.")
    report = check_env("test/Filing-v0", tasks=2)
    assert report.ok, str(report)
