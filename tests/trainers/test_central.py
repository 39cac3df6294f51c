"""A critic's scores in a log choose the tasks that a sampler plays."""

import dataclasses
import json
from pathlib import Path

import pytest

from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.registry import get_component
from turnwise.tasks.core import Split
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.lab.central import main
from turnwise.trainers.sampler.core import example_setup
from turnwise.trainers.sampler.mixture import Mixture


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Eight tasks, of which the n-th has the score n/8."""
    asked = [Request(task, 0) for task in suite_tasks(get_suite("calc/easy"), Split.TRAIN, 8)]
    with EpisodeLog(tmp_path / "episodes.jsonl.zst") as log:
        for n, episode in enumerate(run_episodes(asked, scripted("gold"))):
            told = [{"rubric": n / 8}] * len(episode.trajectory.turns)
            log.append(with_signals(episode, told), update=1, group=n)
    return tmp_path / "episodes.jsonl.zst"


def test_tasks_in_the_middle_are_played_and_no_others(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    main([str(log), str(out), "--signal", "rubric", "--low", "0.2", "--high", "0.6"])
    mixture = Mixture({"calc/easy": 1.0}, 0)
    wanted = {mixture.task(n).id for n in (2, 3, 4)}  # of quantiles 0.175 and 0.525
    assert {*json.loads(out.read_text())} == wanted
    setup = dataclasses.replace(example_setup(), mixture=mixture)
    sampler = get_component("sampler", "listed").target(setup, size=8, tasks=str(out))
    assert {one.task.id for one in sampler.plan(0, 0, 8)} == wanted


@pytest.mark.parametrize(
    ("given", "said"), [(["--signal", "other"], "has the signal 'other'"), (["--low", "0.9"], "no band")]
)
def test_what_chooses_nothing_is_refused(log: Path, tmp_path: Path, given: list[str], said: str) -> None:
    with pytest.raises(TurnwiseError, match=said):
        main([str(log), str(tmp_path / "out.json"), *given])
