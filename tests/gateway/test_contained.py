"""Programs in sandboxes: they reach their session and nothing else, and nothing of them stays."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from test_programs import PRELUDE, ROOT, SUITE

import turnwise
from turnwise.agents.core import Outcome, Reply
from turnwise.agents.gateway.agent_program import program_of
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.command import ProgramPolicy, read_program
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
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


SEEKS = """
def read(path):
    try:
        if os.path.isfile(path):  # a terminal would be waited for
            with open(path, "rb") as file:
                return file.read(1 << 20)
    except OSError:
        pass
    return b""
chat({"role": "user", "content": "are we both here?"})
pids = [name for name in os.listdir("/proc") if name.isdigit()]
variables = [word for pid in pids for word in read(f"/proc/{pid}/environ").split(b"\\0")]
keys = {word.partition(b"=")[2].decode() for word in variables if word.startswith(b"OPENAI_API_KEY=")}
secret, found = b"-".join(HALVES), []
for folder, folders, files in os.walk("/"):
    if folder == "/":
        folders[:] = sorted({*folders} - {"proc", "sys", "usr"})
    found += [path for path in (os.path.join(folder, name) for name in files) if secret in read(path)]
chat({"role": "user", "content": "have we both looked?"})
print(json.dumps({"own": os.environ["OPENAI_API_KEY"], "keys": [*keys], "found": found, "processes": len(pids),
                  "there": [path for path in PATHS if os.path.lexists(path)]}))
"""


class Meeting:
    """A policy that replies to two who ask, and to none before the other."""

    name, version = "meeting", 0

    def __init__(self):
        self._both = asyncio.Barrier(2)

    async def act(self, history):
        await self._both.wait()
        return Reply(Message("assistant", "yes"))

    def close(self):
        """Nothing is held."""


@pytest.mark.usefixtures("sandboxed")
def test_two_contained_programs_find_neither_each_other_nor_what_this_process_knows(tmp_path):
    """Keys of the other session, the log, a secret that lies beside the program: all there, and none of it for them."""
    halves = [uuid4().hex, uuid4().hex]
    log, secret = tmp_path / "log.jsonl.zst", tmp_path / "notes.txt"
    secret.write_text("-".join(halves))
    head = f"PATHS, HALVES = {[str(log), str(secret)]}, {[half.encode() for half in halves]}\n"
    (tmp_path / "agent.py").write_text(PRELUDE + head + SEEKS)
    given = {"command": ["python3", "agent.py"], "workdir": str(tmp_path), "answer": "stdout"}
    policy = ProgramPolicy(Meeting(), program_of(given | {"sandbox": {"files": ["agent.py"]}}, "test"))
    turnwise.evaluate(SUITE, policy, episodes=2, concurrency=2, retries=0, log=log)
    said = [
        json.loads(record.episode.trajectory.turns[-1].acts[-1].message.content) for record in LogReader(log)
    ]
    assert len({one["own"] for one in said}) == 2
    for one in said:
        assert (one["keys"], one["found"], one["there"]) == ([one["own"]], [], [])
        assert one["processes"] < 9  # its own, and those that its sandbox begins with


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
        ("os.kill(-1, 9)", {}, Outcome.INFRA_ERROR, None),
        ("while True: os.write(1, b'x' * 65536)", {}, Outcome.OK, EndReason.FAILED),
        (
            "while True:\n  try: os.fork()\n  except OSError: sys.exit()",
            {"sandbox": {"processes": 9}},
            Outcome.OK,
            EndReason.GAVE_UP,
        ),
        ("os.execvp('no-such-program', ['x'])", {}, Outcome.INFRA_ERROR, None),
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
