"""Rules are read out of what a model says of pairs, and one that goes against success is dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from chat_server import said, serve

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.rollout import run_episodes
from turnwise.errors import TurnwiseError
from turnwise.trainers.kit.asking import transcript
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.lab.rules import main, pairs_of
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.strategy.runner import plan_groups

GOOD, BAD, ALWAYS = "It gets there.", "It wanders.", "It speaks."


@pytest.fixture(scope="module")
def played() -> list[Episode]:
    policy = mixture("demonstrator=0.5,random=0.5")
    return [one for group in plan_groups("shop/quick", 4, 4, 0) for one in run_episodes(group, policy)]


def logged(path: Path, episodes: list[Episode]) -> Path:
    with EpisodeLog(path) as log:
        for number, one in enumerate(episodes):
            log.append(one, update=1, group=number)
    return path


def test_a_rule_that_goes_against_success_is_dropped(
    tmp_path: Path, played: list[Episode], capsys: pytest.CaptureFixture[str]
) -> None:
    won = [transcript(one) for one in played if one.success]
    lost = [transcript(one) for one in played if not one.success]
    assert won
    assert lost
    explained: list[str] = []

    def answer(asked: dict[str, Any]) -> Any:
        question = asked["messages"][-1]["content"]
        if question.startswith("Below are two attempts"):
            better, worse = question.split("First:\n")[1].split("\n\nSecond:\n")
            assert better in won
            assert worse in lost
            explained.append(question)
            return said("The first gets there.")
        if question.startswith("Below is a comparison"):
            assert "The first gets there." in question
            return said(json.dumps([GOOD, BAD]))
        if question.startswith("Rules for"):
            assert question.count(GOOD) == 1
            return said(json.dumps([GOOD, BAD, ALWAYS]))
        right = any(one in question for one in won)
        yes = ALWAYS in question or right == (GOOD in question)
        return said(f"ANSWER: {'yes' if yes else 'no'}")

    log, out = logged(tmp_path / "episodes.jsonl.zst", played), tmp_path / "rules.yaml"
    with serve(answer) as server:
        main(
            [str(log), str(out), "--policy", f"openai:rules@{server.url}", "--weight", "0.5", "--pairs", "2"]
        )
    assert 1 <= len(explained) <= 2
    shown = capsys.readouterr().out
    assert f"goes against success (-1.00): {BAD}" in shown
    recipe = yaml.safe_load(out.read_text())
    assert recipe["judge"]["principles"] == [GOOD, ALWAYS]
    assert f"keeps 1.00, with success +0.00: {ALWAYS}" in out.read_text()
    parts = build_parts(check_recipe({"suite": "shop/quick", "model": {"path": "x/y"}, **recipe}))
    (paid,) = parts.reward([with_signals(episode([1]), [{"rlbff": 0.75}])])  # three rules of four
    assert paid.trajectory.total_reward == pytest.approx(1 + 0.5 * 0.75)


def test_pairs_are_of_one_task_and_of_each_task_once(played: list[Episode]) -> None:
    pairs = pairs_of(played, 99)
    assert all(a.task.id == b.task.id and a.success and not b.success for a, b in pairs)
    assert len({a.task.id for a, _ in pairs}) == len(pairs) > len(pairs_of(played, 1)) == 1


def test_a_log_without_a_preference_is_refused(tmp_path: Path, played: list[Episode]) -> None:
    log = logged(tmp_path / "episodes.jsonl.zst", [one for one in played if one.success])
    with pytest.raises(TurnwiseError, match="no attempt is preferred"):
        main([str(log), str(tmp_path / "out.yaml"), "--policy", "openai:x@http://127.0.0.1:1/v1"])
