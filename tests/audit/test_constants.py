"""A reward under which doing nothing pays more than trying is found in a run's records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split
from turnwise.trainers.audit.running import read_runs
from turnwise.trainers.audit.training.constants import constants


def fined(episode: Episode, fine: float) -> Episode:
    """The episode with a fine on each turn."""
    one = episode.trajectory
    turns = tuple(replace(turn, reward=turn.reward - fine) for turn in one.turns)
    return replace(episode, trajectories={one.agent: replace(one, turns=turns)})


def a_run(folder: Path, fine: float, *, update: int = 1) -> None:
    """A run's folder whose policy was gold at its start, and was fined for each turn."""
    folder.mkdir()
    (folder / "recipe.yaml").write_text("suite: calc/easy\nreward:\n- success\nseed: 0\n")
    (folder / "metrics.jsonl").write_text(json.dumps({"update": 1, "phase": "rl", "success": 1.0}) + "\n")
    asked = [Request(task, 0) for task in suite_tasks(get_suite("calc/easy"), Split.TRAIN, 4)]
    with EpisodeLog(folder / "episodes.jsonl.zst") as log:
        for number, episode in enumerate(run_episodes(asked, scripted("gold"))):
            log.append(fined(episode, fine), update=update, group=number)


@pytest.mark.parametrize("fine", [0.0, 2.0])
def test_doing_nothing_earns_more_than_a_policy_that_is_fined_for_trying(tmp_path: Path, fine: float) -> None:
    a_run(tmp_path / "run", fine)
    found = constants(read_runs([str(tmp_path / "run")]))
    assert ((found.value("null less start") or 0) > 0) is (fine > 0)
    assert any("teaches to do nothing" in line for line in found.said) is (fine > 0)


def test_a_log_without_its_first_update_says_so(tmp_path: Path) -> None:
    a_run(tmp_path / "run", 0.0, update=7)
    with pytest.raises(TurnwiseError, match="does not begin with its first update"):
        constants(read_runs([str(tmp_path / "run")]))
