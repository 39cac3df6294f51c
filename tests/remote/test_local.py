"""A run that is placed on this machine: engines of its own, watched and started again, and its result the same."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.remote.local import EnginePlan, LocalEngine, local_engines
from turnwise.errors import EngineError, TurnwiseError
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.placement import Placement, parse_placement


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slurm", "is no place"),
        ("local:engine=2", "no role 'engine'"),
        ("local:engines=two", "no number of engines"),
        ("local:engines=1,engines=2", "no number of engines"),
        ("local:engines=-1", "no number of engines"),
    ],
)
def test_a_place_that_is_none_is_refused(text: str, said: str):
    with pytest.raises(TurnwiseError, match=said):
        parse_placement(text)


def test_roles_that_are_not_named_stay_as_the_recipe_has_them():
    assert parse_placement("local:env_workers=3") == Placement(0, 3)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from letters import RECIPE, register_letters

    register_letters()
    small = {
        "updates": 3,
        "evaluate": {"every": 3, "dev": 2, "test": 2},
        "checkpoint": {"every": 1, "keep": 9},
    }
    return yaml.safe_load(RECIPE) | small


@pytest.mark.slow
def test_an_engine_that_cannot_start_says_why_and_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in {"MOST_STARTS": 2, "FIRST_REST_S": 0.01}.items():
        monkeypatch.setattr(f"turnwise.agents.remote.local.{name}", value)
    plan = EnginePlan(str(tmp_path / "no-model"), "torch", 64, 4, "cpu")
    said = r"did not start: engine 0 .* ended with 1, 2 times .*no-model"
    with pytest.raises(EngineError, match=said), local_engines(plan, 1, tmp_path):
        pass


@pytest.mark.full  # four starts of servers
@pytest.mark.slow
def test_a_run_with_engines_of_its_own_is_the_run_without_though_one_is_killed(
    letters: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """One of two engines is killed after the first update, and is back, with the weights it was started with, before the next."""
    engines: list[LocalEngine] = []
    run = LocalEngine._run

    def known(engine: LocalEngine) -> None:
        engines.append(engine)
        run(engine)

    monkeypatch.setattr(LocalEngine, "_run", known)

    def played(out: str, log: Callable[[str], None] = lambda line: None, **given: Any) -> list[Any]:
        train(letters, out=tmp_path / out, preflight=False, log=log, **given)
        assert yaml.safe_load((tmp_path / out / "recipe.yaml").read_text())["engine"]["kind"] == "torch"
        return [
            (turn.reply.action_ids, turn.reply.versions)
            for record in LogReader(tmp_path / out / "episodes.jsonl.zst")
            for turn in record.episode.trajectory.turns
        ]

    def told(line: str) -> None:
        if "update   1/3" in line:
            os.kill(killed := engines[0].pid, signal.SIGKILL)
            again = threading.Event()
            while not (engines[0].starts == 2 and engines[0].pid not in (0, killed) and engines[0].answers):
                again.wait(0.1)

    here = played("here")
    with caplog.at_level(logging.WARNING):
        assert played("there", told, on="local:engines=2,env_workers=1") == here
    assert engines[0].starts == 2
    assert "was ended by SIGKILL and is started again" in caplog.text
    assert [engine.pid for engine in engines] == [0, 0]
