"""Learners that torchrun or SLURM starts: the run that starts them itself, and the same again when one is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

torch = pytest.importorskip("torch")

from answers import wait_for
from letter_runs import LetterRun

from turnwise.agents.workers.agreement import code, said_in
from turnwise.agents.workers.sealed import prove_to_host
from turnwise.agents.workers.wire import framed
from turnwise.errors import RunError
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.world import _ROOMS, MOST_UNPROVEN, Gathering, RankPlace, _open, world_of

PROGRAM = """
import sys
from letters import register_letters
register_letters()
from turnwise.cli import main
main(["train", sys.argv[1], "--out", sys.argv[2], "--no-preflight", "--resume"])
"""
UPDATES = 4


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    made = Run(tmp_path, monkeypatch)
    yield made
    made.end()


class Run(LetterRun):
    """The letters recipe, learned by two."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch, UPDATES)
        (folder / "program.py").write_text(PROGRAM)

    def start(self, out: str, *command: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start a process of the run in this folder."""
        given = [str(self.folder / name) for name in ("program.py", "recipe.yaml", out)]
        return self.launch(out, *command, *given, **variables)

    def torchrun(self, out: str, *options: str) -> subprocess.Popen[bytes]:
        """Start two of them by torchrun."""
        torchrun = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            "--master-port",
            free_port(),
        ]
        return self.start(out, *torchrun, *options)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return str(door.getsockname()[1])


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(600)
def test_learners_that_torchrun_starts_make_the_weights_of_the_run_that_starts_them_itself(run: Run):
    assert run.torchrun("torchrun").wait(500) == 0, run.said()
    weights = run.weights("torchrun")
    assert weights
    assert weights == run.alone("alone")
    assert not (run.folder / "torchrun" / "learners.token").exists()


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_learner_that_is_killed_is_started_again_by_torchrun_and_the_weights_are_the_same(run: Run):
    whole = run.torchrun("killed", "--max-restarts", "2")
    checkpoint = run.folder / "killed" / "checkpoints" / "step-000001"
    wait_for(lambda: checkpoint.exists() or whole.poll() is not None, 400)
    (second,) = (one for one in psutil.Process(whole.pid).children() if one.environ().get("RANK") == "1")
    os.kill(second.pid, signal.SIGKILL)
    assert whole.wait(500) == 0, run.said()
    assert run.weights("killed") == run.alone("alone")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_learners_that_are_started_one_by_one_as_slurm_does_learn_together(run: Run):
    port = free_port()
    both = [
        run.start(
            "slurm", sys.executable, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port
        )
        for rank in (1, 0)
    ]
    assert [process.wait(500) for process in both] == [0, 0], run.said()
    assert run.weights("slurm")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"RANK": "1", "WORLD_SIZE": "2"}, "not whole"),
        ({"RANK": "x", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "not whole"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "learner 2 of 2"),
    ],
)
def test_variables_that_say_no_place_are_refused(variables: dict[str, str], said: str):
    with pytest.raises(RunError, match=said):
        world_of(variables)


def test_only_the_command_learns_beside_others(run: Run, monkeypatch: pytest.MonkeyPatch):
    for name, value in {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RunError, match="learner 1 of 2, by RANK"):
        train(run.recipe, out=run.folder / "out")


# --- who is heard at the door ------------------------------------------------------------------------

SECOND = RankPlace(1, 2, 1, 2, "127.0.0.1", 0)


@pytest.fixture
def gathering(tmp_path: Path) -> Iterator[Gathering]:
    """The first of two learners, who waits for the other."""
    with contextlib.closing(
        Gathering(RankPlace(0, 2, 0, 2, "127.0.0.1", int(free_port())), tmp_path)
    ) as made:
        yield made


@contextlib.contextmanager
def strangers(gathering: Gathering, count: int) -> Iterator[list[socket.socket]]:
    """Callers who are greeted and say nothing; nobody needs a token for that."""
    with contextlib.ExitStack() as stack:
        door = gathering._door.getsockname()
        ends = [stack.enter_context(socket.create_connection(door, 60)) for _ in range(count)]
        assert all(end.recv(1) for end in ends[:1])
        yield ends


def join(gathering: Gathering, run: Path) -> Mapping[str, Any]:
    """What the first learner says to the second one."""
    with _open(SECOND._replace(port=gathering.world.port), gathering.meeting.store, run) as connection:
        asked = json.dumps({"rank": 1, "code": code(_ROOMS)}).encode()
        connection.send_packed(framed(asked))
        said = said_in(connection.receive_packed())
        assert len(gathering.all()) == 1
        return said


def test_callers_who_say_nothing_keep_no_learner_waiting(gathering: Gathering, tmp_path: Path):
    with strangers(gathering, 3):
        assert join(gathering, tmp_path) == {"refused": ""}


@pytest.mark.slow
def test_a_learner_that_is_hung_up_on_since_too_many_call_calls_again(
    gathering: Gathering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("turnwise.agents.workers.sealed.PROVE_S", 2.0)
    with strangers(gathering, MOST_UNPROVEN):
        assert join(gathering, tmp_path) == {"refused": ""}


def test_who_has_the_token_and_does_not_say_who_it_is_is_not_waited_for(
    gathering: Gathering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    door = gathering._door.getsockname()
    with monkeypatch.context() as hasty, socket.create_connection(door, 60) as end:
        hasty.setattr("turnwise.trainers.run.world.PROVE_S", 0.2)
        connection = prove_to_host(end, (tmp_path / "learners.token").read_text(), "the first")
        assert said_in(connection.receive_packed()) == {"refused": "it did not say what it is"}
        connection.close()
    assert join(gathering, tmp_path) == {"refused": ""}
