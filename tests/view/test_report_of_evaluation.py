"""`turnwise report` of an evaluation is about the evaluation; charts that never changed are folded; intervals stay within bounds."""

import json
import math

import places as made
import pytest

import turnwise
from turnwise.agents.evaluation.comparison import difference_over_seeds
from turnwise.agents.evaluation.statistics import Interval, share_mean, student_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.report.page import write_report


def test_the_report_of_an_evaluation_says_what_it_came_to(tmp_path):
    folder = made.evaluation(tmp_path / "judged", episodes=30)
    page = write_report(folder).read_text()
    figures = json.loads((folder / "evaluation.json").read_text())
    assert f"{100 * figures['success']:.1f} %" in page
    assert "Turnwise evaluation" in page
    assert "training episodes" not in page
    assert "metrics.jsonl" not in page
    for end, count in figures["ends"].items():
        assert f'<td>{end.replace("_", " ")}</td><td class="n">{count}</td>' in page
    assert page.count('<details class="group"') == sum(
        min(n, {"failed": 4}.get(end, 2)) for end, n in figures["ends"].items()
    )


def test_an_evaluation_that_is_not_finished_is_reported_as_far_as_it_is(tmp_path):
    folder = made.evaluation(tmp_path / "judged", "scripted:gold", episodes=6)
    (folder / "evaluation.json").unlink()
    page = write_report(folder).read_text()
    assert "it is not finished" in page
    assert "100.0 %" in page


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_a_damaged_evaluation_is_an_error_that_names_the_file(tmp_path, text):
    folder = made.evaluation(tmp_path / "judged", "scripted:gold", episodes=2)
    (folder / "evaluation.json").write_text(text)
    with pytest.raises(TurnwiseError, match=r"evaluation\.json is damaged"):
        write_report(folder)


def test_hostile_texts_are_text_in_the_report(tmp_path):
    folder = made.hostile(tmp_path / "odd")
    with pytest.raises(TurnwiseError, match="names no split"):
        write_report(folder)
    (folder / "asked.json").write_text(
        json.dumps({"suite": made.HOSTILE, "policy": made.HOSTILE, made.HOSTILE: 1})
    )
    page = write_report(folder).read_text()
    assert "<script>" not in page
    assert "<svg onload" not in page
    assert "\u202e" not in page


def test_charts_that_never_changed_are_folded(tmp_path):
    page = write_report(made.run(tmp_path / "run")).read_text()
    assert "1 that never changed" in page
    assert "becoming less likely" in page[page.index("that never changed") :]
    assert page.count("<figure>") == 1


@pytest.mark.parametrize("shares", [[0.0, 1.0], [0.97, 1.0, 0.99], [0.0, 0.01, 0.0], [0.4, 0.6]])
def test_intervals_of_shares_stay_between_nothing_and_all(shares):
    low, high = share_mean(shares).interval
    plain = student_mean(shares).interval
    assert 0 <= low <= sum(shares) / len(shares) <= high <= 1
    assert (low, high) == (max(0.0, plain.low), min(1.0, plain.high))
    assert share_mean([0.5]).interval == Interval(-math.inf, math.inf)  # one run says nothing


def test_differences_of_shares_stay_between_minus_one_and_one():
    found = difference_over_seeds({0: 0.0, 1: 0.1}, {0: 0.2, 1: 0.9})
    assert (found.interval.low, found.interval.high) == (-1.0, 1.0)
    assert found.p_value > 0.05


def test_scores_of_real_evaluations_keep_their_bounds():
    result = turnwise.evaluate("shop/easy", "scripted:gold", episodes=3)
    assert 0 <= result.mean_score_interval.low <= result.mean_score_interval.high <= 1
