"""`turnwise eval` where things fail: causes, bounds, exit codes, kills and resumes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hosts import Host

from turnwise.agents.log.records import from_line
from turnwise.agents.policies.registry import fingerprint
from turnwise.cli.app import run as in_process

FLAKY = '''
import sys, time
from typing import NamedTuple
from turnwise import AgentEnv, EndReason, Split, Suite, Task, Transition, register, register_suite


class State(NamedTuple):
    number: int


class Flaky(AgentEnv[State]):
    """Solved by any word; every `every`-th task raises instead. Each step takes a moment."""

    system, turn_limit, blocking = "Say something.", 3, True

    def __init__(self, every=2, seconds=0.0, **options):
        super().__init__(**options)
        self.every, self.seconds = every, seconds

    @classmethod
    def generate(cls, rng, split, **knobs):
        remainder = [Split.TRAIN, Split.DEV, Split.TEST].index(split)
        return Task("me/Flaky-v0", "Say something.", {"number": 3 * rng.randrange(10**6) + remainder})

    def initial(self, task):
        return State(task.options["number"]), task.prompt

    def transition(self, state, action):
        time.sleep(self.seconds)
        if self.every and state.number // 3 % self.every == 0:
            raise KeyError("no such shelf")
        solved = self.rng("luck").random() < 0.6
        return Transition(state, "Yes.", {"outcome": float(solved)}, EndReason.SOLVED if solved else EndReason.GAVE_UP)

    def gold(self, state):
        return "hello"


register("me/Flaky-v0", "flaky:Flaky", "sometimes raises")
register_suite(Suite("me/flaky", "me/Flaky-v0", "sometimes raises"))
if __name__ == "__main__":
    from turnwise.cli import main
    main()
'''
EVAL = ["eval", "me/flaky", "--policy", "scripted:echo"]


@pytest.fixture
def flaky(tmp_path: Path) -> Path:
    (tmp_path / "flaky.py").write_text(FLAKY)
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "flaky", *arguments]


def here(folder: Path) -> dict[str, Any]:
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {"cwd": folder, "env": {**os.environ, "PYTHONPATH": path}}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=120, check=False, **here(folder)
    )


@pytest.mark.slow
def test_an_environment_that_raises_is_told_with_its_line_and_ends_with_1(flaky):
    done = run(flaky, *EVAL, "--episodes", "20")
    assert done.returncode == 1, done.stderr
    shown = " ".join(done.stdout.split())
    assert "success, a bound" in shown
    assert "env_error" in shown
    assert "no such shelf" in shown
    assert "max_failed" in shown
    data = json.loads(run(flaky, *EVAL, "--episodes", "20", "--json").stdout)
    assert data["too_many_failed"] is True
    assert data["bounded"] is True
    assert data["causes"][0]["episodes"] == data["outcomes"]["env_error"]
    accepted = run(flaky, *EVAL, "--episodes", "20", "--max-failed", "0.9", "--json")
    assert accepted.returncode == 0
    wrong = run(flaky, *EVAL, "--max-failed", "10")
    assert (wrong.returncode, "from 0 to 1" in wrong.stderr) == (1, True)


SLOW = ["--episodes", "90", "--k", "3", "--concurrency", "4", "--json", "--env-option", "seconds=0.03"]


def figures(out: Path) -> dict[str, Any]:
    return {**json.loads((out / "evaluation.json").read_text()), "seconds": 0}


def logged(out: Path) -> list[tuple[str, int, str, float]]:
    """What the log holds, read without Turnwise's reader: nothing hides a torn or doubled line."""
    with (out / "episodes.jsonl.zst").open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    episodes = [from_line(line).episode for line in text.splitlines()]
    return sorted((e.task.id, e.seed, str(e.end), e.score) for e in episodes)


def start_and_kill(folder: Path, *arguments: str) -> None:
    """Start the command, and kill it when its log has grown."""
    log = folder / "killed" / "episodes.jsonl.zst"
    before = log.stat().st_size if log.exists() else 0
    process = subprocess.Popen(command(*arguments), stdout=-1, stderr=-1, **here(folder))
    while process.poll() is None and not (log.exists() and log.stat().st_size > before):
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_killed_evaluation_resumes_to_the_same_figures(flaky):
    options = [*EVAL, *SLOW, "every=0"]
    whole = run(flaky, *options, "--out", "whole")
    assert whole.returncode == 0, whole.stderr
    killed = flaky / "killed"
    start_and_kill(flaky, *options, "--out", "killed")
    assert json.loads((killed / "asked.json").read_text())["suite"] == "me/flaky"
    assert not (killed / "evaluation.json").exists()
    first = logged(killed)
    start_and_kill(flaky, *options, "--out", "killed", "--resume")
    kept = logged(killed)
    assert 0 < len(first) < len(kept) < 90
    assert set(first) <= set(kept)
    resumed = run(flaky, *options, "--out", "killed", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert figures(killed) == figures(flaky / "whole")
    assert logged(killed) == logged(flaky / "whole")
    assert len(logged(killed)) == 90
    assert set(kept) <= set(logged(killed))
    assert {path.name for path in killed.iterdir()} == {
        "asked.json",
        "episodes.jsonl.zst",
        "evaluation.json",
        ".lock",
    }


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--concurrency 0", "concurrency is 0: nothing would ever be played. → Give 1 or more."),
        ("--retries -1", "retries is -1. → Give 0 (play nothing again) or more."),
        ("--temperature -1", "The temperature is -1. → Give 0 (greedy) or more."),
        ("--max-tokens -5", "max_tokens is -5. → Give 1 or more, or 0: as it was trained."),
        ("--tools json", "There is no way to show tools 'json'. → Known: auto, glm, harmony, hermes,"),
        (
            "--episodes 4 --k 8",
            "4 episodes are fewer than the k=8 of a single task. → Ask for 8 or more of them.",
        ),
        ("--env-option depth=3", "There is no option of the environment called 'depth'. → Known: closeness,"),
        ("--policy gold", "The policy 'gold' names no kind. → Write scripted:gold."),
        (
            "--policy openai:m@localhost:9",
            "'localhost:9' is no URL of a server. → Write http://HOST:PORT/v1.",
        ),
        (
            "--policy python:mine.py:act",
            "act cannot be called with a history alone: missing a required argument:",
        ),
    ],
)
def test_a_mistake_is_refused_before_anything_is_played(flags, told, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def act(history, temperature):\n    return '7'\n")
    policy = [] if "--policy" in flags else ["--policy", "scripted:gold"]
    assert in_process(["eval", "calc/easy", *policy, *flags.split()]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert told in said
    assert "please report it" not in said


def test_a_resume_that_asks_for_something_else_is_refused(tmp_path, capsys):
    def evaluate(**changed: str) -> tuple[int, str]:
        given = {"policy": "scripted:random", "episodes": "4", "out": str(tmp_path / "out"), **changed}
        suite = given.pop("suite", "shop/easy")
        flags = [text for name, value in given.items() for text in (f"--{name}", value) if text]
        return in_process(["eval", suite, *flags]), " ".join(capsys.readouterr().err.split())

    assert evaluate() == (0, "")
    assert "holds an evaluation already" in evaluate()[1]
    for changed, field in [
        ({"suite": "shop/quick"}, 'suite (was "shop/easy", now "shop/quick")'),
        ({"seed": "1"}, "seed (was 0, now 1)"),
        ({"k": "2"}, "k (was 1, now 2)"),
        ({"split": "dev"}, 'split (was "test", now "dev")'),
        ({"policy": "scripted:gold"}, 'policy (was "scripted:random", now "scripted:gold")'),
        ({"temperature": "0"}, "temperature (was null, now 0.0)"),
        ({"max-tokens": "9"}, "max_tokens (was 0, now 9)"),
        ({"env-option": "shaping=0.5"}, 'env_options (was {}, now {"shaping": 0.5})'),
        ({"episode-s": "9"}, "episode_s (was null, now 9.0)"),
    ]:
        code, said = evaluate(resume="", **changed)
        assert (code, field in said) == (1, True), said
    assert evaluate(resume="", episodes="6", concurrency="1")[0] == 0
    (tmp_path / "out" / "asked.json").write_text("{")
    assert "cannot be read" in evaluate(resume="")[1]


def test_a_policy_that_was_changed_is_another_one(tmp_path, capsys):
    code = tmp_path / "mine_to_change.py"
    code.write_text("def act(history):\n    return 'search[shoes]'\n")
    first = [
        "eval",
        "shop/easy",
        "--policy",
        f"python:{code}:act",
        "--episodes",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    assert in_process(first) == 0
    assert in_process([*first, "--resume"]) == 0
    code.write_text("def act(history):\n    return 'search[hats]'\n")
    assert in_process([*first, "--resume"]) == 1
    assert "policy_files" in capsys.readouterr().err


def test_the_weights_of_a_model_are_part_of_its_fingerprint(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(bytes(3 << 20))
    before = fingerprint(f"torch:{tmp_path}")
    assert fingerprint(f"vllm:{tmp_path}") == before != fingerprint("scripted:gold") == ""
    weights.write_bytes(bytes((3 << 20) - 1) + b"x")
    assert fingerprint(f"torch:{tmp_path}") != before


@pytest.mark.slow
def test_an_environment_that_was_changed_is_another_one(flaky):
    first = [*EVAL, "--episodes", "4", "--max-failed", "1", "--out", "out"]
    assert run(flaky, *first).returncode == 0
    code = flaky / "flaky.py"
    code.write_text(code.read_text().replace("no such shelf", "no such book"))
    done = run(flaky, *first, "--resume")
    assert (done.returncode, "env_source" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_damaged_log_is_repaired_and_what_was_lost_is_played_again(tmp_path, capsys):
    out = tmp_path / "out"
    first = ["eval", "shop/easy", "--policy", "scripted:random", "--episodes", "60", "--out", str(out)]
    assert in_process(first) == 0
    figures_before, log_before = figures(out), logged(out)
    log = out / "episodes.jsonl.zst"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0x40
    log.write_bytes(data)
    assert in_process([*first, "--resume"]) == 1
    assert f"turnwise repair {log}" in " ".join(capsys.readouterr().err.split())
    assert in_process(["repair", str(out), "--dry-run"]) == 0
    assert "Nothing was written" in capsys.readouterr().out
    assert log.read_bytes() == data
    assert in_process(["repair", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"after line \d+, \d+ bytes \(at byte \d+\): they cannot be read", shown)
    assert "episodes.jsonl.zst.damaged" in shown
    kept = logged(out)
    assert 0 < len(kept) < 60
    assert in_process([*first, "--resume"]) == 0
    assert figures(out) == figures_before
    assert logged(out) == log_before


@pytest.mark.slow
def test_what_failed_is_played_again_and_more_can_be_asked_for(flaky):
    switch = flaky / "switch"
    code = flaky / "flaky.py"
    code.write_text(
        code.read_text().replace(
            "if self.every and", "import os\n        if not os.path.exists('switch') and"
        )
    )
    first = [*EVAL, "--episodes", "20", "--out", "out"]
    assert run(flaky, *first).returncode == 1
    assert figures(flaky / "out")["bounded"] is True
    switch.touch()
    done = run(flaky, *EVAL, "--episodes", "30", "--out", "out", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert run(flaky, *EVAL, "--episodes", "30", "--out", "whole").returncode == 0
    assert figures(flaky / "out") == figures(flaky / "whole")
    assert logged(flaky / "out") == logged(flaky / "whole")


@pytest.mark.slow
def test_deadlines_and_retries_reach_the_rollout(flaky):
    late = ["--env-option", "seconds=0.5", "every=0", "--step-s", "0.05", "--retries", "0"]
    done = run(flaky, *EVAL, "--episodes", "2", *late)
    assert done.returncode == 1
    assert re.search(
        r"2 × infra_error at \S*flaky.py:\d+: DeadlineError: step\(\) of \S+ took more than 0.05 s",
        done.stderr,
    )
    for wrong in (["--step-s", "0"], ["--episode-s", "-1"], ["--env-option", "day=2026-01-01"], ["--resume"]):
        assert in_process(["eval", "shop/easy", "--policy", "scripted:gold", *wrong]) == 1


@pytest.mark.slow
def test_worker_processes_change_no_figure(flaky):
    first = [*EVAL, "--episodes", "12", "--env-option", "every=0"]
    assert run(flaky, *first, "--out", "here").returncode == 0
    done = run(flaky, *first, "--env-workers", "2", "--out", "elsewhere")
    assert done.returncode == 0, done.stderr
    assert figures(flaky / "elsewhere") == figures(flaky / "here")
    assert logged(flaky / "elsewhere") == logged(flaky / "here")


# --- on other hosts -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_evaluation_on_a_host_is_the_same_as_here(turnwise, tmp_path):
    token = tmp_path / "run.token"
    token.write_text("0123456789abcdef0123456789abcdef")
    asked = ["eval", "shop/easy", "--policy", "scripted:demonstrator", "--episodes", "12", "--json", "--out"]
    assert turnwise(*asked, "here").code == 0
    with contextlib.closing(Host(token, processes=2)) as host:
        assert turnwise(*asked, "there", "--worker-hosts", host.address, "--token-file", str(token)).code == 0
        wrong = tmp_path / "wrong.token"
        wrong.write_text("another-token-of-16-characters")
        refused = turnwise(*asked, "refused", "--worker-hosts", host.address, "--token-file", str(wrong))
    assert figures(tmp_path / "there") == figures(tmp_path / "here")
    assert logged(tmp_path / "there") == logged(tmp_path / "here")
    assert len(logged(tmp_path / "there")) == 12
    assert refused.code
    assert "has another token" in refused.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--token-file", "t"], "--worker-hosts"),
        (["--worker-hosts", "a:1", "--token-file", "t", "--env-workers", "2"], "Leave one out"),
        (["--worker-hosts", "a:1"], "no token is named"),
        (["--worker-hosts", "nowhere", "--token-file", "t"], "is no address"),
    ],
)
def test_hosts_that_cannot_be_are_refused(turnwise, tmp_path, options, said):
    (tmp_path / "t").write_text("0123456789abcdef0123456789abcdef")
    ran = turnwise("eval", "shop/easy", "--policy", "scripted:gold", *options)
    assert ran.code
    assert said in ran.err
