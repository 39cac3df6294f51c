"""Turns with their true advantages: what is picked, kept in a run's directory and shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from turnwise.agents.policies.mixture import mixture
from turnwise.cli.credit import _into_report, _write
from turnwise.errors import TurnwiseError
from turnwise.trainers.lab.quality import Report, Scale, credit_quality
from turnwise.trainers.lab.score import BatchScore
from turnwise.trainers.lab.true_turns import true_group
from turnwise.trainers.lab.truth import TrueAdvantageBatch, suite_batch
from turnwise.trainers.report.turns import TRUE_TURNS, TrueGroup, load_groups, save_groups, section

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
