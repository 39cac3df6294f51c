"""Turns with their true advantages: what is picked, kept in a run's directory and shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from turnwise.agents.core import Episode, Outcome, VersionSpan
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.policies.mixture import mixture
from turnwise.cli.credit import _into_report, _write
from turnwise.errors import TurnwiseError
from turnwise.trainers.lab.quality import (
    LoggedRun,
    LoggedStage,
    Report,
    Scale,
    credit_quality,
    logged_run,
)
from turnwise.trainers.lab.score import BatchScore
from turnwise.trainers.lab.true_turns import true_group
from turnwise.trainers.lab.truth import TrueAdvantageBatch, logged_batch, suite_batch
from turnwise.trainers.report.turns import TRUE_TURNS, TrueGroup, load_groups, save_groups, section
from turnwise.trainers.view.told import show_episode

pytestmark = pytest.mark.slow

HOSTILE = "<script>document.title='taken'</script>{{ 7 * 7 }}"
RULES = ["rloo", "grpo", "return_to_go", "vine"]


@pytest.fixture(scope="module")
def true_batch() -> TrueAdvantageBatch:
    policy = mixture("demonstrator=0.5,random=0.5")
    return suite_batch("shop/quick", policy, groups=4, size=4, forks=12, vine_forks=2, seed=0)


@pytest.fixture(scope="module")
def report() -> Report:
    scale = Scale(groups=3, size=8, forks=4, vine_forks=2)
    stages = ["mix:demonstrator=0.2,random=0.8", "mix:demonstrator=0.8,random=0.2"]
    return credit_quality(["shop/quick"], stages, rules=RULES, processes=False, scale=scale)


def shown(true_batch: TrueAdvantageBatch, *show: str) -> TrueGroup:
    factors = {"truth": (2, 1.0), "against": (-1, -1.0), "nothing": (0, 0.0)}
    grades = {
        name: BatchScore({"correlation": np.array([correlation])}, 0.0, factor * true_batch.truth_BK)
        for name, (factor, correlation) in factors.items()
    }
    return true_group(true_batch, grades, 12, show)


def test_turns_have_the_truth_of_the_exam(true_batch: TrueAdvantageBatch) -> None:
    group = shown(true_batch)
    assert [rule.name for rule in group.rules] == ["truth", "nothing", "against"]
    assert [rule.name for rule in group.columns] == ["truth", "against"], "nothing to be seen of the third"
    assert [rule.name for rule in shown(true_batch, "against", "nothing").columns] == ["nothing", "against"]
    assert [e.total_reward for e in group.episodes] == sorted(
        (e.total_reward for e in group.episodes), reverse=True
    )
    members = [b for b, e in enumerate(true_batch.episodes) if e.task.id == group.task_id]
    for found in group.episodes:
        b = members[found.number - 1]
        turns = true_batch.episodes[b].trajectory.turns
        assert [turn.action for turn in found.turns] == [str(turn.action) for turn in turns]
        for k, turn in enumerate(found.turns):
            assert turn.truth == pytest.approx(true_batch.truth_BK[b, k].item(), abs=1e-5)
            assert turn.error == pytest.approx(true_batch.error_BK[b, k].item(), abs=1e-5)
            assert turn.given["truth"] == pytest.approx(2 * turn.truth, abs=2e-5)
        assert found.largest("truth") == pytest.approx(2 * max(abs(t.truth) for t in found.turns), abs=1e-4)


def test_the_group_is_the_one_that_differs_most_beyond_the_errors(true_batch: TrueAdvantageBatch) -> None:
    third_B = (true_batch.turns.group_B == 2)[:, None]
    louder = replace(true_batch, truth_BK=torch.where(third_B, 10 * true_batch.truth_BK, true_batch.truth_BK))
    noisy = replace(
        louder, error_BK=torch.where(third_B, 10 * louder.truth_BK.abs() + 10, true_batch.error_BK)
    )
    third = true_batch.episodes[int((true_batch.turns.group_B == 2).nonzero()[0])].task.id
    assert shown(louder).task_id == third
    assert shown(noisy).task_id != third


def test_every_suite_and_stage_is_shown_once(report: Report) -> None:
    assert [(group.source, group.stage) for group in report.shown] == [
        ("shop/quick", "mix:demonstrator=0.2,random=0.8"),
        ("shop/quick", "mix:demonstrator=0.8,random=0.2"),
    ]
    for group in report.shown:
        assert {rule.name for rule in group.rules} == {*RULES}
        for episode in group.episodes:
            assert all({*turn.given} == {*RULES} for turn in episode.turns)
            assert len({turn.given["rloo"] for turn in episode.turns}) == 1, "one for a whole episode"


def test_rules_that_gave_the_same_share_a_column(report: Report) -> None:
    for group in report.shown:
        standing_for = [{rule.name, *rule.like} for rule in group.columns]
        assert sum("rloo" in names for names in standing_for) == 1
        assert any({"rloo", "grpo"} <= names for names in standing_for)


def test_the_page_and_the_runs_report_show_them(report: Report, tmp_path: Path) -> None:
    written = {path.name: path for path in _write(report, tmp_path / "out")}
    text = written["credit-quality-turns.html"].read_text("utf-8")
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text(json.dumps({"update": 1, "phase": "rl", "reward": 0.5}) + "\n")
    in_report = _into_report(report, run).read_text("utf-8")
    assert load_groups(run / TRUE_TURNS) == report.shown
    for html in (text, in_report):
        assert html.count("What each turn was truly worth") == 1
        for group in report.shown:
            assert group.task_id in html
            for turn in group.episodes[0].turns:
                assert f"{turn.truth:+.3f}" in html
        assert "<script" not in html


def test_texts_are_shown_and_not_obeyed(report: Report) -> None:
    first = report.shown[0]
    episode = first.episodes[0]
    turn = episode.turns[0].model_copy(update={"saw": f'"{HOSTILE}', "action": HOSTILE})
    hostile = first.model_copy(
        update={"goal": HOSTILE, "episodes": (episode.model_copy(update={"turns": (turn,)}),)}
    )
    html = str(section([hostile]))
    assert "<script" not in html
    assert html.count("{{ 7 * 7 }}") == 4, "goal, action, what was seen, and the action over the overview"


def test_a_damaged_file_is_named(report: Report, tmp_path: Path) -> None:
    path = save_groups(report.shown, tmp_path / TRUE_TURNS)
    assert load_groups(path) == report.shown
    path.write_text(path.read_text()[:-20])
    with pytest.raises(TurnwiseError, match=r"true-turns\.json is damaged"):
        load_groups(path)
    assert load_groups(tmp_path / "nothing.json") == ()


def groups_of(true_batch: TrueAdvantageBatch) -> list[list[Episode]]:
    return [list(true_batch.episodes[start : start + 4]) for start in range(0, 16, 4)]


def test_logged_episodes_have_the_truth_that_they_had_when_they_were_played(
    true_batch: TrueAdvantageBatch,
) -> None:
    policy = mixture("demonstrator=0.5,random=0.5")
    again = logged_batch("logged", policy, groups_of(true_batch), forks=12, vine_forks=2)
    assert again.truth_BK.abs().sum() > 0
    assert torch.equal(again.truth_BK, true_batch.truth_BK)
    assert torch.equal(again.error_BK, true_batch.error_BK)
    assert torch.equal(again.turns.signals["fork_value"], true_batch.turns.signals["fork_value"])


def test_an_episode_that_does_not_play_again_is_no_truth(true_batch: TrueAdvantageBatch) -> None:
    first, *others = groups_of(true_batch)[0]
    one = first.trajectory
    turns = (*one.turns[:-1], replace(one.turns[-1], state_key="another"))
    other = replace(first, trajectories={one.agent: replace(one, turns=turns)})
    policy = mixture("demonstrator=0.5,random=0.5")
    with pytest.raises(TurnwiseError, match=f"turn {len(turns)} begins in another state"):
        logged_batch("logged", policy, [[other, *others]], forks=1, vine_forks=1)


def logged(run: Path, groups: Sequence[Sequence[Episode]], versions: Sequence[int]) -> Path:
    """A run with checkpoints after 0 and 3 updates that logged these groups, each sampled by a version of its weights."""
    for step in (0, 3):
        (run / "checkpoints" / f"step-{step:06d}" / "model").mkdir(parents=True)
    with EpisodeLog(run / "episodes.jsonl.zst") as log:
        for number, (group, version) in enumerate(zip(groups, versions, strict=True)):
            for one in group:
                turns = tuple(
                    replace(turn, reply=turn.reply._replace(versions=(VersionSpan(0, version),)))
                    for turn in one.trajectory.turns
                )
                agent = one.trajectory.agent
                told = replace(one, trajectories={agent: replace(one.trajectory, turns=turns)})
                log.append(told, update=version, group=number)
    return run


def test_a_run_is_measured_where_a_checkpoint_sampled_what_it_logged(
    true_batch: TrueAdvantageBatch, tmp_path: Path
) -> None:
    first, second, third, fourth = groups_of(true_batch)
    spoiled = [replace(third[0], outcome=Outcome.INFRA_ERROR), *third[1:]]
    run = logged(tmp_path / "mine", [spoiled, first, second, fourth], [0, 0, 1, 0])
    found = logged_run(run, 1, {"a": 1})
    assert (found.source, found.env_options) == ("mine, as logged", {"a": 1})
    (stage,) = found.stages
    assert stage.policy == f"torch:{run}/checkpoints/step-000000/model"
    assert [[one.seed for one in group] for group in stage.groups] == [[one.seed for one in first]]
    assert len(logged_run(run, 9, {}).stages[0].groups) == 2
    elsewhere = logged(tmp_path / "other", [first], [2])
    with pytest.raises(TurnwiseError, match="keeps no episodes that one of its checkpoints sampled"):
        logged_run(elsewhere, 1, {})


def test_a_measured_episode_of_a_run_has_its_truth_in_the_viewer(
    true_batch: TrueAdvantageBatch, tmp_path: Path
) -> None:
    group = tuple(groups_of(true_batch)[0])
    log = logged(tmp_path / "mine", [group], [0]) / "episodes.jsonl.zst"
    run = LoggedRun("mine, as logged", (LoggedStage("mix:demonstrator=0.5,random=0.5", (group,)),), {})
    scale = Scale(groups=1, size=4, forks=4, vine_forks=2)
    report = credit_quality([], run=run, rules=RULES, processes=False, scale=scale)
    assert report.sources == ["mine, as logged"]
    path = save_groups(report.shown, tmp_path / TRUE_TURNS)
    told = [show_episode(record, None, load_groups(path)) for record in LogReader(log)]
    with_truth = [one for one in told if one.agents[0].turns[0].truth]
    assert len(with_truth) >= 3
    for one in with_truth:
        assert all(turn.truth for turn in one.agents[0].turns)
