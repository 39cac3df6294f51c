"""The benchmark of a run's last update: both sides learn the log, play its tasks, and are compared where they played alike."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from test_bench_update import Here
from test_learner import spoken

from turnwise.agents.core import ROOT, Episode, Sampling
from turnwise.errors import RunError, TurnwiseError
from turnwise.trainers.bench import update_log
from turnwise.trainers.bench.laps import UpdateLap, UpdateWorkload, token_ratio
from turnwise.trainers.bench.update import bench_update, make_models, play
from turnwise.trainers.bench.update_log import LoggedRollouts, bench_log, check_played, logged_update

LAP = UpdateLap(2.0, 1.0, 0.5, 0.1, episodes=4, turns=12, sampled=100, read=800, steps=2)


def groups_of(*sizes: int) -> list[list[Episode]]:
    return [[spoken([(6, 2), (3, 4)], 10 * g + i) for i in range(size)] for g, size in enumerate(sizes)]


def test_tokens_are_beside_the_distinct_prefixes_of_each_group():
    one = spoken([(10, 5)], 1)
    assert token_ratio([[one, one], [one]]) == 45 / 30, "groups share nothing with one another"


def test_a_log_that_trl_cannot_be_given_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = tmp_path / "run" / "episodes.jsonl.zst"
    monkeypatch.setattr(update_log, "last_groups", lambda file: groups_of(2, 2))
    found = logged_update(file)
    assert (found.sampled, found.read) == (4 * 6, 4 * 15)
    assert found.model == tmp_path / "run" / "best" / "model"
    monkeypatch.setattr(update_log, "last_groups", lambda file: groups_of(2, 1))
    with pytest.raises(TurnwiseError, match="groups of several sizes"):
        logged_update(file)
    fresh = spoken([(6, 2), (3, 4)], 1, fresh=frozenset({1}))
    assert fresh.trajectory.turns[1].reply.parent == ROOT
    monkeypatch.setattr(update_log, "last_groups", lambda file: [[fresh, fresh]])
    with pytest.raises(TurnwiseError, match="episodes of several rows"):
        logged_update(file)


def test_a_run_that_is_not_there_is_refused_before_anything_is_measured(tmp_path: Path):
    with pytest.raises(TurnwiseError, match="is no run with an episode log"):
        bench_update(str(tmp_path / "none"))


def test_sides_that_played_otherwise_are_not_compared():
    check_played({"a": [LAP], "b": [LAP._replace(sampled=91)]})
    with pytest.raises(RunError, match="a 100, b 89"):
        check_played({"a": [LAP], "b": [LAP._replace(sampled=89)]})


def test_seconds_of_play_are_for_the_tokens_of_the_log_and_those_of_learning_as_they_are():
    found = update_log._parts("x", [LAP], sampled=150)
    assert found == {"x": 1.5 + 0.5 + 0.1, "x_play": 1.5, "x_learn": 0.5, "x_push": 0.1}
    assert update_log._parts("x", [LAP._replace(push_s=0.0)], 100) == {
        "x": 1.5,
        "x_play": 1.0,
        "x_learn": 0.5,
    }


def test_trl_is_handed_the_log_and_what_was_played_is_counted(monkeypatch: pytest.MonkeyPatch):
    logged, nothing = groups_of(2, 2), Any
    monkeypatch.setattr(update_log, "last_groups", lambda file: logged)
    rollouts = LoggedRollouts(Path("log"), [], nothing, Sampling())
    played = [spoken([(4, 1)], 99)]
    told = rollouts._told(played)
    assert rollouts.counts == [(1, 1, 1, 5)]
    first = logged[0][0].trajectory.turns
    assert told["prompt_ids"][0] == [*first[0].reply.prompt_ids]
    asked = [0] * len(first[1].reply.prompt_ids)
    assert told["env_mask"][0] == [1, 1, *asked, 1, 1, 1, 1]
    assert told["scored"] == [episode.score for group in logged for episode in group]


@pytest.mark.skipif(find_spec("trl") is None, reason="TRL is not installed")
@pytest.mark.full  # a run and two sides
@pytest.mark.slow
def test_both_sides_play_and_learn_the_last_update_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(update_log, "Apart", Here)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    load = UpdateWorkload(
        groups=2, group_size=2, updates=1, engines=("torch",), trl=True, threads=1, times=()
    )
    make_models(tmp_path / "model", tmp_path / "long", load)
    rollout = {"groups": 2, "group_size": 2, "concurrency": 4, "max_vacuous": 0}
    changes: dict[str, Any] = {
        "turns": 3, "model": {"path": str(tmp_path / "model")}, "warm_start": None, "rollout": rollout, "engine.kind": "torch",
        "evaluate.dev": 1, "evaluate.test": 1, "sinks": [],
    }  # fmt: skip
    play(tmp_path / "run", changes, load)
    capfd.readouterr()
    figures = bench_log(logged_update(tmp_path / "run" / "episodes.jsonl.zst"), load, repeats=1)
    value = {name: figure.value for name, figure in figures.items()}
    assert value["log_sampled"] == 4 * 3 * 16
    parts = ("play", "learn", "push")
    assert value["log_torch"] == pytest.approx(sum(value[f"log_torch_{part}"] for part in parts))
    assert value["log_times_trl_torch"] == pytest.approx(value["log_trl_transformers"] / value["log_torch"])
    assert value["log_times_trl_torch_learn"] > 0
    assert 1 < value["log_token_ratio"] < 2
    assert not capfd.readouterr().out, "TRL's last line is no part of --json"
