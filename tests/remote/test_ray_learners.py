"""Learners that Ray places: the run that starts them itself, also when learners and actors are killed, or it is told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

torch = pytest.importorskip("torch")

from answers import wait_for
from letter_runs import TESTS, LetterRun

from turnwise.errors import RunError, TurnwiseError
from turnwise.trainers.run.by_ray import _result, _variables
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.placement import parse_placement
from turnwise.trainers.run.world import RankPlace, world_of

UPDATES = 5


@pytest.fixture
def run(ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    made = Run(tmp_path, monkeypatch)
    yield made
    made.end()


class Run(LetterRun):
    """The letters recipe, learned by two that Ray places; its environment comes with a plugin, as another package's would."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plugin = folder / "site" / "letters-1.0.dist-info"
        plugin.mkdir(parents=True)
        (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: letters\nVersion: 1.0\n")
        (plugin / "entry_points.txt").write_text("[turnwise.plugins]\nletters = letters:register_letters\n")
        super().__init__(folder, monkeypatch, UPDATES, (plugin.parent, TESTS))

    def start(self, out: str, *more: str) -> subprocess.Popen[bytes]:
        """Start the command in this folder."""
        command = [sys.executable, "-m", "turnwise", "train", "recipe.yaml", "--out", out]
        return self.launch(out, *command, "--no-preflight", "--on", "ray:learners=2", *more)

    def learners(self, command: subprocess.Popen[bytes]) -> dict[int, psutil.Process]:
        """The learners by number."""
        found: dict[int, psutil.Process] = {}
        for one in psutil.Process(command.pid).children(recursive=True):
            try:
                if "--with-parent" in one.cmdline() and one.status() != psutil.STATUS_ZOMBIE:
                    found[int(one.environ()["RANK"])] = one
            except psutil.Error:
                continue
        return found


@pytest.mark.full  # Ray, and three starts of two learners
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_learners_that_ray_places_make_the_same_weights_when_one_and_then_an_actor_are_killed(run: Run):
    command = run.start("killed")

    def ready(step: int) -> bool:
        return command.poll() is not None or (
            run.checkpoint("killed", step).exists() and {*run.learners(command)} == {0, 1}
        )

    wait_for(lambda: ready(1), 400)
    before = run.learners(command)
    os.kill(before[1].pid, signal.SIGKILL)
    wait_for(lambda: command.poll() is not None or "(1 of 3)" in run.said(), 120)
    wait_for(
        lambda: command.poll() is not None or (ready(2) and run.learners(command)[0].pid != before[0].pid),
        400,
    )
    actor = run.learners(command)[0].parent()
    assert actor is not None
    actor.kill()
    assert command.wait(500) == 0, run.said()
    assert "learner 1 was ended by SIGKILL: all learners start again (1 of 3)" in run.said()
    assert "learner 0 is gone with its machine or its actor: all learners start again (2 of 3)" in run.said()
    assert "after RL" in run.said()
    assert run.weights("killed") == run.alone("alone")


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_that_ray_places_is_saved_where_it_is_told_to_stop_and_goes_on(run: Run):
    command = run.start("stopped")
    wait_for(lambda: command.poll() is not None or run.checkpoint("stopped", 1).exists(), 400)
    learners = run.learners(command).values()
    command.terminate()
    assert command.wait(200) == 130, run.said()
    assert "interrupted; go on with --resume" in run.said()
    wait_for(lambda: not any(one.is_running() for one in learners))
    assert run.start("stopped", "--resume").wait(500) == 0, run.said()
    assert run.weights("stopped") == run.alone("alone")


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_the_run_says_is_wrong_is_the_command_s_own_error_and_starts_nothing_again(run: Run):
    (run.folder / "taken").write_text("no folder")
    command = run.start("taken")
    assert command.wait(250) == 1
    assert "start again" not in run.said()
    assert "taken" in run.said()


def test_each_learner_is_told_a_place_that_it_understands():
    assert world_of(_variables(0, 1, "127.0.0.1", 29500)) is None
    assert world_of(_variables(1, 3, "127.0.0.1", 29500)) == RankPlace(1, 3, 0, 1, "127.0.0.1", 29500)


def test_a_run_that_says_nothing_is_told():
    with pytest.raises(RunError, match="without a word"):
        _result("")
    with pytest.raises(RunError, match="full"):
        _result('{"error": "OSError", "cause": "The disk is full.", "remedy": "Make room."}')


def test_where_learners_cannot_be_placed_is_told(tmp_path: Path):
    with pytest.raises(TurnwiseError, match="the run's own"):
        parse_placement("local:learners=2")
    with pytest.raises(RunError, match="this is a call"):
        train("shop-quick", out=tmp_path, on="ray:learners=2")
    assert parse_placement("ray:learners=2,engines=1,env_workers=4").beside == "ray:engines=1,env_workers=4"
    assert parse_placement("ray:learners=2").beside == ""
