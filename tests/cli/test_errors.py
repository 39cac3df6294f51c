"""Bad input: at most five lines with cause and remedy, a code that is not zero, JSON where asked for."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from turnwise.agents.log.episode_log import read_episodes
from turnwise.cli.app import explain
from turnwise.errors import TurnwiseError

WRONG = [
    (["eval", "shop/eazy", "--policy", "scripted:gold"], 1, "shop/eazy", "shop/easy"),
    (["eval", "shop/easy", "--policy", "scripted:glod"], 1, "glod", "gold"),
    (["eval", "shop/easy", "--policy", "vlm:x"], 1, "vlm", "vllm"),
    (["eval", "shop/easy", "--policy", "torch:"], 1, "torch:", "torch:PATH_OR_ID"),
    (["eval", "shop/easy", "--policy", "torch:/no/such/model"], 1, "/no/such/model", "config.json"),
    (["eval", "shop/easy", "--policy", "scripted:gold", "--split", "tst"], 1, "tst", "test"),
    (["eval", "shop/easy", "--policy", "scripted:gold", "--episodes", "0"], 1, "0 episodes", "at least 1"),
    (["check", "turnwise/Shop-v1"], 1, "turnwise/Shop-v1", "turnwise/Shop-v0"),
    (["play", "shop/hrad", "--policy", "scripted:gold"], 1, "shop/hrad", "shop/hard"),
    (["list", "credits"], 1, "credits", "credit"),
    (["replay", "nothing"], 1, "nothing", ""),
    (["new-env", "1+1"], 1, "1+1", "word-chain"),
    (["bench", "envs"], 1, "envs", "env"),
    (["bench", "client", "--model", "smollm2"], 1, "takes no model", "bench rollout --model"),
    (["bench", "rollout", "--concurrency", "64"], 1, "with a model", "--model smollm2 --concurrency"),
    (["bench", "client", "--concurrency", "64"], 1, "with a model", "--model smollm2 --concurrency"),
    (["train", "shop-quik"], 1, "shop-quik", "shop-quick"),
    (["train", "shop-quick", "--set", "updats=3"], 1, "updats", "updates"),
    (["train", "shop-quick", "--set", "updates"], 1, "updates", "key=value"),
    (["explain", "nothing.yaml"], 1, "nothing.yaml", "list recipes"),
    (["report", "nothing"], 1, "nothing", ""),
    (["evl"], 2, "evl", "--help"),
    (["eval", "shop/easy"], 2, "--policy", "--help"),
    (["eval", "shop/easy", "--policy", "scripted:gold", "--episodes", "many"], 2, "many", "--help"),
    (["eval", "shop/easy", "--polcy", "scripted:gold"], 2, "--polcy", "--help"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "code", "cause", "remedy"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_errors_name_cause_and_remedy(turnwise, arguments, code, cause, remedy):
    done = turnwise(*arguments, "--json")
    assert done.code == code
    assert set(done.json) == {"error", "cause", "remedy"}
    assert cause in done.json["cause"]
    assert remedy in done.json["remedy"]
    assert len(done.err.strip().splitlines()) <= 5
    assert "Traceback" not in done.err


def test_errors_without_json_leave_stdout_empty(turnwise):
    done = turnwise("check", "turnwise/Shop-v1")
    assert (done.code, done.out) == (1, "")
    assert done.err == "There is no environment 'turnwise/Shop-v1'.\n→ Did you mean 'turnwise/Shop-v0'?\n"


@pytest.mark.slow
def test_a_corrupt_log_is_named(turnwise, tmp_path):
    (tmp_path / "broken.jsonl").write_text('{"format": 99}\n')
    done = turnwise("replay", "broken.jsonl", "--json")
    assert done.code == 1
    assert "broken.jsonl" in done.json["cause"]


def test_debug_shows_the_traceback(turnwise):
    assert "Traceback" in turnwise("check", "nothing", "--debug").err


def test_unexpected_errors_leave_their_traceback_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    problem = explain(ZeroDivisionError("oh\nno"))
    assert problem.cause == "Unexpected ZeroDivisionError: oh no"
    (file,) = tmp_path.iterdir()
    assert str(file) in problem.remedy
    assert "ZeroDivisionError" in file.read_text()


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/x"),
            "The disk is full, or a limit is reached: runs/x",
        ),
        (OSError(errno.EMFILE, "Too many open files", "/proc/meminfo"), "files, sockets and pipes"),
        (PermissionError(errno.EACCES, "denied", "/root/x"), "No permission: /root/x"),
        (ModuleNotFoundError("No module named 'vllm'", name="vllm"), "'vllm' is not installed"),
        (TurnwiseError("This.", "That."), "This."),
    ],
)
def test_known_errors_are_explained(error, cause):
    problem = explain(error)
    assert cause in problem.cause
    assert problem.remedy


def test_a_full_disk(turnwise):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    command = f"{sys.executable} -c 'from turnwise.cli import main; main()' list envs --json >/dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "disk is full" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -c 'from turnwise.cli import main; main()' list suites | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_finished(tmp_path):
    command = [sys.executable, "-c", "from turnwise.cli import main; main()", "eval", "shop/hard", "--json"]
    flags = [
        "--policy",
        "scripted:random",
        "--episodes",
        "2000",
        "--k",
        "500",
        "--out",
        "kept",
        "--concurrency",
        "2",
    ]

    heed = ["env", "--default-signal=INT"]  # a shell lets its background jobs, and their children, ignore it
    with subprocess.Popen(
        [*heed, *command, *flags], cwd=tmp_path, stdout=-1, stderr=-1, text=True
    ) as process:
        log = tmp_path / "kept" / "episodes.jsonl.zst"
        while not (log.exists() and log.stat().st_size) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert '"interrupted": true' in out
    assert 0 < len(list(read_episodes(log))) < 2000


def test_a_users_own_error_is_theirs_to_mend(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(ZeroDivisionError) as raised:
        _divide(0)
    problem = explain(raised.value)
    line = _divide.__code__.co_firstlineno + 1
    assert problem.cause == f"ZeroDivisionError at tests/cli/test_errors.py:{line}: division by zero"
    assert problem.remedy.startswith("Fix that line; the traceback is in ")


def _divide(by):
    return 1 / by
