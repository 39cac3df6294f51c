"""Programs in sandboxes: they reach their session and nothing else, and nothing of them stays."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from test_programs import PRELUDE, ROOT, SUITE

import turnwise
from turnwise.agents.core import Outcome
from turnwise.agents.gateway.program import program_of
from turnwise.agents.policies.command import ProgramPolicy, read_program
from turnwise.envs.core import EndReason
from turnwise.errors import TurnwiseError
from turnwise.tools import owner

LOOKS = """
import socket
found = {"user": os.getuid(), "env": sorted(os.environ), "here": sorted(os.listdir("."))}
found["files"] = [path for path in PATHS if os.path.exists(path)]
def tried(address):
    try:
        socket.create_connection(address, 2).close()
        return "reached"
    except OSError:
        return ""
found["reached"] = [address for address in ADDRESSES if tried(address)]
try:
    post(os.environ["SESSION_URL"].rpartition("/")[0] + "/other/act", {"text": "x"})
except Exception as error:
    found["other session"] = getattr(error, "code", str(error))
found["said"] = chat({"role": "user", "content": sys.stdin.read()})["content"]
print(json.dumps(found))
"""


def contained(text: str, folder: Path, *arguments: str, **options):
    """A policy whose program is this text, in a sandbox."""
    (folder / "agent.py").write_text(PRELUDE + text)
    sandbox = {"files": ["agent.py"], **options.pop("sandbox", {})}
    given = {"command": ["python3", "agent.py", *arguments], "workdir": str(folder), "sandbox": sandbox}
    return ProgramPolicy(turnwise.make_policy("scripted:gold"), program_of(given | options, "test"))


@pytest.mark.parametrize("backend", ["bubblewrap", "docker"])
def test_a_contained_program_reaches_its_session_and_nothing_else(backend, working, monkeypatch, tmp_path):
    working(backend)
    monkeypatch.setenv("MY_API_KEY", "secret")
    (tmp_path / "not-given.txt").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as other:
        addresses = [other.getsockname(), ("192.0.2.1", 80)]
        paths = [str(tmp_path), str(ROOT), "/var/run/docker.sock", str(Path.home() / ".cache")]
        text = f"PATHS, ADDRESSES = {paths}, {addresses}" + LOOKS
        policy = contained(text, tmp_path, sandbox={"backend": backend}, answer="stdout")
        (episode,) = turnwise.rollout(SUITE, policy, episodes=1, retries=0)
    found = json.loads(episode.trajectory.turns[0].acts[0].message.content)
    assert found["said"] == episode.trajectory.turns[0].reply.message.content
    assert (found["files"], found["reached"], found["here"]) == ([], [], ["agent.py"])
    assert found["other session"] == 401
    assert found["user"] not in (0, 65534)
    assert "OPENAI_API_KEY" in found["env"]
    assert "MY_API_KEY" not in found["env"]
    assert not [path for path in owner.folders(os.getpid()) if "-door-" in path.name]


@pytest.mark.usefixtures("sandboxed")
def test_an_agent_that_knows_nothing_of_it_plays_gold_in_a_sandbox_and_replays(tmp_path):
    path = tmp_path / "agent.yaml"
    given = {"command": ["python3", "examples/plain_agent.py"], "workdir": str(ROOT), "prompt": "messages"}
    path.write_text(json.dumps(given | {"sandbox": {"files": ["examples/plain_agent.py"]}}))
    policy = ProgramPolicy(turnwise.make_policy("scripted:gold"), read_program(str(path)))
    done = turnwise.evaluate(SUITE, policy, episodes=2, log=tmp_path / "log.jsonl.zst")
    assert done.success == 1.0
    assert turnwise.replay(tmp_path / "log.jsonl.zst").ok


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    ("text", "options", "outcome", "end"),
    [
        ("if os.fork() == 0: os.setsid(); time.sleep(600)", {}, Outcome.OK, EndReason.GAVE_UP),
        ("os.fork(); time.sleep(600)", {"timeout": 1}, Outcome.LIMIT, EndReason.TIME_LIMIT),
        ("for n in range(100): act('search[red]')\ntime.sleep(600)", {}, Outcome.LIMIT, EndReason.TURN_LIMIT),
        ("os.kill(-1, 9)", {}, Outcome.OK, EndReason.GAVE_UP),
        ("while True: os.write(1, b'x' * 65536)", {}, Outcome.OK, EndReason.FAILED),
        (
            "while True:\n  try: os.fork()\n  except OSError: sys.exit()",
            {"sandbox": {"processes": 9}},
            Outcome.OK,
            EndReason.GAVE_UP,
        ),
        ("os.execvp('no-such-program', ['x'])", {}, Outcome.OK, EndReason.GAVE_UP),
        ("sys.exit(127)", {}, Outcome.INFRA_ERROR, None),
    ],
    ids=["leaves a session", "hangs", "is overtaken", "kills all", "floods", "forks", "fails", "not found"],
)
def test_whatever_a_contained_program_does_has_a_name_and_nothing_stays(
    text, options, outcome, end, tmp_path
):
    mark = uuid4().hex
    policy = contained(text, tmp_path, mark, **options)
    (episode,) = turnwise.rollout(SUITE, policy, episodes=1, retries=0)
    assert (episode.outcome, episode.end) == (outcome, end), episode.error
    assert not [one.pid for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]


@pytest.mark.usefixtures("sandboxed")
def test_mistakes_are_told_before_anything_runs(tmp_path):
    for sandbox, named in (
        ({"backend": "process"}, "does not shut"),
        ({"backend": "bubblewarp"}, "Did you mean"),
        ({"backend": "bubblewrap", "image": "python:3.11"}, "cannot run the image"),
        ({"files": ["../secret"]}, "no file of"),
        ({"files": ["missing.py"]}, "no file of"),
        ({"files": []}, "agent.py, which its sandbox does not have"),
        ({"processes": 1}, "at least 2"),
    ):
        with pytest.raises(TurnwiseError) as error:
            contained("", tmp_path, sandbox=sandbox)
        assert named in f"{error.value.cause} {error.value.remedy}", error.value
    with pytest.raises(TurnwiseError, match="preload"):
        contained("", tmp_path, preload=["json"])
