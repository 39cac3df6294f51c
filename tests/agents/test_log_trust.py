"""A log is only read: what it may ask of an environment, and what only its reader may."""

from __future__ import annotations

import asyncio
import http.server
import json
import sys
import threading
from dataclasses import replace

import pytest

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.log.records import Record, env_version, to_line
from turnwise.agents.replay import replay
from turnwise.cli.app import run
from turnwise.envs.core import AgentEnv, Guard
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_entries, get_suite, suite_tasks
from turnwise.envs.trust import LoggedEnv, LogTrust, options_of
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall
from turnwise.trainers.view.forking import ForkQuestion, play_forks


def logged(path, task, options, *calls):
    """A log that nobody played: one episode of ``task``, written by hand."""
    turns = tuple(
        Turn(Messages((Message("user", "?"),)), Reply(Message("assistant", "", (call,))), 0.0, {}, "0" * 16)
        for call in calls
    )
    episode = Episode(task, 0, {"agent": Trajectory(turns)}, Outcome.OK)
    record = Record(episode, "x", env_version(task.env, {})._replace(options=options))
    path.write_text(to_line(record) + "\n")
    return path


def task_of(suite):
    return next(iter(suite_tasks(get_suite(suite), Split.TEST, 1)))


def test_a_strangers_log_runs_no_command_outside_of_a_sandbox(tmp_path):
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').close()"
    log = logged(
        tmp_path / "e.jsonl",
        task_of("code/easy"),
        {"backend": "process", "unsafe": True},
        ToolCall("run", {"code": code, "program": code, "input": ""}, "1"),
    )
    with pytest.raises(EnvError, match="the option backend: 'process'") as caught:
        replay(log)
    assert "--trust-log" in caught.value.remedy
    with pytest.raises(
        EnvError, match="the option unsafe: True, which runs a model's code without a sandbox"
    ):
        replay(log, env_options={"backend": "process"})
    assert not mark.exists()


def test_a_strangers_log_sends_no_variable_anywhere(tmp_path, monkeypatch, capsys):
    heard = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(self.path)
            self.send_error(500)

    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-0123456789")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/x?leak=${{MY_API_KEY}}"
        call = ToolCall("search", {"query": "a"}, "1")
        log = logged(tmp_path / "e.jsonl", task_of("search/easy"), {"server": address}, call)
        assert run(["replay", str(log)]) == 1
        assert "A log is only read" in capsys.readouterr().err
        assert heard == []
        replay(log, trust_log=True)
        assert heard  # the same log, trusted, does ask its server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("suite", "options", "said"),
    [
        ("toolworld/quick", {"domain": "code:/tmp/tools"}, "domain: 'code:/tmp/tools'"),
        ("toolworld/quick", {"domain": "files:/etc"}, "domain: 'files:/etc'"),
        ("toolworld/quick", {"user": "openai:m@http://127.0.0.1:9/v1"}, "user: 'openai:"),
        ("dialogue/bargain-quick", {"partner": "recorded:answers.json"}, "partner: 'recorded:"),
        ("search/easy", {"library": {"type": "corpus", "path": "corpus", "sha256": "0"}}, "library.path: 'corpus'"),
        ("swe/small", {"origin": {"name": "x", "needs": ["evil==1"]}}, "origin: "),
    ],
)  # fmt: skip
def test_a_task_of_a_log_names_no_code_files_or_addresses(suite, options, said):
    task = task_of(suite)
    assert options_of(LoggedEnv(task, {})) == {}
    with pytest.raises(EnvError, match=f"a task with {said}"):
        options_of(LoggedEnv(replace(task, options={**task.options, **options}), {}))


class Stranger(AgentEnv[int]):
    """An environment of somebody who declares one of its options."""

    guarded_options = {"loose": Guard("lets everything in")}  # noqa: RUF012

    def __init__(
        self, *, note: str = "", depth: object = None, loose: bool = False, where: str = "/usr", **given
    ):
        super().__init__(**given)


@pytest.mark.parametrize(
    "value",
    ["${KEY}", "http://host", "/etc/passwd", "a/b", "~root", "../x", "C:\\x", "module:Class", "localhost:80", "host.org",
     "coins.py", "10.0.0.1", "localhost", {"deep": [["x", {"y": "file:///x"}]]}, ["ok", "${A}"]],
)  # fmt: skip
def test_an_option_that_nobody_declared_is_judged_by_its_form(monkeypatch, value):
    monkeypatch.setattr("turnwise.envs.trust.env_class", lambda name: Stranger)
    task = Task("stranger/S-v0", "?")
    harmless = {"note": "two words: fine.", "depth": [1, {"a": None}], "where": "/usr", "loose": False}
    assert options_of(LoggedEnv(task, harmless)) == harmless
    for name in ("note", "depth", "unknown"):
        with pytest.raises(
            EnvError, match=f"the option {name}: .*names a file, an address, code or a variable"
        ):
            options_of(LoggedEnv(task, {name: value}))
        assert options_of(LoggedEnv(task, {name: value}), LogTrust(options={name: "mine"})) == {name: "mine"}
    assert options_of(LoggedEnv(task, {"note": value, "loose": True}), LogTrust(log=True))["loose"]
    for loose in (True, 1, "no", None):
        with pytest.raises(EnvError, match="lets everything in"):
            options_of(LoggedEnv(task, {"loose": loose}))


def test_what_is_guarded_is_an_option_of_the_environment_that_declares_it():
    for entry in env_entries():
        if entry.package != "turnwise":  # another test's, whose file may be gone
            continue
        cls = entry.load()
        names = {*cls.guarded_options}
        taken = {
            name
            for base in cls.__mro__
            for name in getattr(vars(base).get("__init__"), "__kwdefaults__", None) or ()
        }
        assert names <= taken, entry.name


COINS = '''
from turnwise import AgentEnv, EndReason, Message, Split, Task, Transition

class Coins(AgentEnv[int]):
    """Say heads."""

    @classmethod
    def generate(cls, rng, split, **knobs):
        return Task("me/Coins-v0", "heads or tails?", {"n": rng.randrange(10**6), "split": str(split)})

    def initial(self, task):
        return 0, task.prompt

    def transition(self, state, action):
        return Transition(state, "so be it", {"outcome": float(action.content == "heads")}, EndReason.SOLVED)

    def gold(self, state):
        return "heads"
'''


@pytest.fixture
def forgotten(monkeypatch):
    """Registries as a new process has them: without the environments of files that this one has read."""

    def forget():
        import gymnasium

        from turnwise.envs import registry

        registry._envs.pop("me/Coins-v0", None)
        gymnasium.registry.pop("me/Coins-v0", None)
        for name in [name for name in sys.modules if name.startswith("coins_")]:
            del sys.modules[name]

    forget()
    yield forget
    forget()


def test_an_environment_of_a_file_replays_where_its_reader_names_the_file(
    tmp_path, monkeypatch, forgotten, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coins.py").write_text(COINS)
    out = str(tmp_path / "c")
    assert run(["eval", "coins.py", "--policy", "scripted:gold", "--episodes", "2", "--out", out]) == 0
    record = next(iter(LogReader(f"{out}/episodes.jsonl.zst")))
    assert record.env.file == f"{tmp_path / 'coins.py'}:Coins"

    forgotten()
    (tmp_path / "coins.py").write_text(COINS + "\nopen('ran', 'w').close()\n")
    capsys.readouterr()
    assert run(["replay", out]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "a file that a log names is code" in said
    assert "--env" in said
    assert not (tmp_path / "ran").exists()

    (tmp_path / "coins.py").write_text(COINS)
    for trusting in (["--env", "coins.py"], ["--trust-log"]):
        forgotten()
        assert run(["replay", out, *trusting]) == 0, capsys.readouterr()


def test_a_log_of_a_file_says_nothing_of_it_where_the_environment_is_installed(episodes, tmp_path):
    with EpisodeLog(tmp_path / "e.jsonl") as log:
        log.append(episodes[0])
    assert "file" not in json.loads((tmp_path / "e.jsonl").read_text())["env"]


def test_what_if_asks_no_more_of_a_strangers_log_than_replay_does(tmp_path):
    call = ToolCall("run", {"code": "1", "program": "1", "input": ""}, "1")
    log = logged(tmp_path / "e.jsonl", task_of("code/easy"), {"unsafe": True}, call)
    question = ForkQuestion(log=str(log), start=0, line=0, turn=1)
    with pytest.raises(EnvError, match="A log is only read"):
        asyncio.run(play_forks(question, lambda answer: None))
    asyncio.run(play_forks(question.model_copy(update={"trust_log": True}), lambda answer: None))
