"""Whoever dies while a program plays, nothing hangs, nothing stays, and the episode says why it ended."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen
from uuid import uuid4

import psutil
import pytest
from gateway_kit import AnsweringEngine
from test_programs import PRELUDE, ROOT, SUITE, program

import turnwise
from turnwise.agents.core import Outcome, Sampling
from turnwise.agents.gateway import launching
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.command import ProgramPolicy
from turnwise.agents.policies.model import ModelPolicy
from turnwise.envs.core import EndReason

TRAINER = """
import json, sys, turnwise
from turnwise.agents.policies.command import ProgramPolicy, program_of
given = program_of(json.load(sys.stdin), "test")
turnwise.rollout("shop/easy", ProgramPolicy(turnwise.make_policy("scripted:gold"), given), episodes=2, retries=0)
"""
HANGS = """
act("search[red]")
if os.fork() == 0: os.setsid()
while True: time.sleep(60)
"""
ASKS = 'chat({"role": "user", "content": "pid %d ." % os.getpid()})'


class Meddling(AnsweringEngine):
    """Does something to the program that asks before it answers, or instead."""

    meddle: Callable[[int], None]
    cancelled = 0
    answers = True

    async def generate(self, prompt_ids, sampling, *, stop_ids, seed):
        text = self.renderer.tokenizer.decode([*prompt_ids])
        found = re.search(r"pid (\d+)", text)
        if found:
            self.meddle(int(found[1]))
        try:
            if not self.answers:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().generate(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)


@pytest.fixture
def engine(renderer) -> Meddling:
    return Meddling(renderer, lambda text: "search[red]")


def model(engine: Meddling) -> ModelPolicy:
    return ModelPolicy(engine, engine.renderer, Sampling(1.0, 1.0, 40), name="small")


def marked(mark: str) -> list[int]:
    """The processes that have the mark among their arguments."""
    return [one.pid for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_program_that_is_killed_while_it_waits_for_a_reply_ends_its_episode_and_the_sampling(engine):
    engine.answers, engine.meddle = False, lambda pid: os.kill(pid, signal.SIGKILL)
    for before, ended in (
        ("act('search[red]'); ", (Outcome.OK, EndReason.GAVE_UP, 1)),
        ("", (Outcome.INFRA_ERROR, None, 0)),  # it was given nothing and did nothing
    ):
        policy = ProgramPolicy(model(engine), program(before + ASKS))
        (episode,) = turnwise.rollout(SUITE, policy, episodes=1, retries=0)
        assert (episode.outcome, episode.end, len(episode.trajectory.turns)) == ended
    assert engine.cancelled == 2


@pytest.mark.slow
def test_what_a_killed_supervisor_leaves_is_ended_with_its_episode(engine):
    """A program may kill the process that keeps it: it is the same user's."""
    children: list[psutil.Process] = []

    def meddle(pid: int) -> None:
        children[:] = [psutil.Process(pid), *psutil.Process(pid).children()]
        os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)

    engine.meddle = meddle
    text = f"if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n{ASKS}\ntime.sleep(600)"
    (episode,) = turnwise.rollout(SUITE, ProgramPolicy(model(engine), program(text)), episodes=1, retries=0)
    assert (episode.outcome, episode.end, len(children)) == (Outcome.OK, EndReason.GAVE_UP, 2)
    psutil.wait_procs(children, timeout=30)
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in children)


def test_an_episode_outlives_the_process_that_starts_programs(engine):
    policy = ProgramPolicy(model(engine), program(f"act({ASKS}['content'])"))
    engine.meddle = lambda pid: policy._launcher._server.process.kill()
    for _ in range(2):
        (episode,) = turnwise.rollout(SUITE, policy, episodes=1, retries=0)
        assert (episode.outcome, episode.end) == (Outcome.OK, EndReason.GAVE_UP)
        assert [len(turn.acts) for turn in episode.trajectory.turns] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("contained", [False, True], ids=["as this user", "in a sandbox"])
def test_programs_end_with_a_trainer_that_is_killed(contained, tmp_path, request):
    mark = uuid4().hex
    (tmp_path / "agent.py").write_text(PRELUDE + HANGS)
    given: dict[str, object] = {"command": [sys.executable, "-S", "agent.py", mark], "workdir": str(tmp_path)}
    if contained:
        request.getfixturevalue("sandboxed")
        given |= {"command": ["python3", "agent.py", mark], "sandbox": {"files": ["agent.py"]}}
    each = 3 if contained else 2  # a port forward, the program and its child
    with subprocess.Popen([sys.executable, "-c", TRAINER], stdin=subprocess.PIPE) as trainer:
        assert trainer.stdin is not None
        trainer.stdin.write(json.dumps(given).encode())
        trainer.stdin.close()
        until(lambda: len(marked(mark)) >= 2 * each or trainer.poll() is not None)
        trainer.kill()
    until(lambda: not marked(mark))


@pytest.mark.slow
def test_a_gateway_that_is_killed_leaves_the_log_of_what_had_ended(tmp_path):
    def post(url: str, key: str, body: dict[str, object]) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {key}"}
        with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=60) as answer:
            return json.load(answer)

    command = [sys.executable, "-c", "from turnwise.cli import main; main()", "gateway"]
    command += ["--policy", "scripted:gold", "--suite", SUITE, "--token", "the-token", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as gateway:
        assert gateway.stderr is not None
        address = gateway.stderr.readline().split()[0]
        opened = [post(address, "the-token", {}) for _ in range(2)]
        done = post(f"{opened[0]['url']}/end", "the-token", {})
        gateway.kill()
    assert done["end"] == "gave_up"
    said = {"messages": [{"role": "user", "content": "x"}]}
    with pytest.raises(URLError):
        post(f"{opened[1]['base_url']}/chat/completions", str(opened[1]["key"]), said)
    (record,) = LogReader(tmp_path / "episodes.jsonl.zst")
    assert record.episode.end is EndReason.GAVE_UP


def test_a_fork_server_that_does_not_end_by_itself_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = launching.Launcher()
    job = launching.ProgramJob(("true",), str(tmp_path), dict(os.environ))
    assert asyncio.run(launcher.run(job, b"", 60)).code == 0
    server = launcher._server
    assert server is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    monkeypatch.setattr(launching, "GRACE_S", 0.1)
    launcher.close()
    assert server.process.returncode == -signal.SIGKILL
