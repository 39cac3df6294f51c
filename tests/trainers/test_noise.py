"""Noise of evaluations: results of other evaluators as they are, intervals that hold what they say, and pairs told apart."""

import json
import random
import sys
import zipfile

import numpy as np
import pytest
from scipy.stats import binom

if sys.version_info >= (3, 14):
    import zipfile as packed
else:
    from backports.zstd import zipfile as packed

from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.foreign_results import TaskResults, read_results
from turnwise.trainers.compare.noise import noise, run_noise


def write(path, value):
    path.write_bytes(
        value
        if isinstance(value, bytes)
        else (value if isinstance(value, str) else json.dumps(value)).encode()
    )
    return path


SAMPLES = [
    {"id": "a", "epoch": 1, "scores": {"match": {"value": "C"}, "length": {"value": 12}}},
    {"id": "a", "epoch": 2, "scores": {"match": {"value": "I"}, "length": {"value": 3}}},
    {"id": 7, "epoch": 1, "scores": {"match": {"value": 1.0}}},
    {"id": "broken", "epoch": 1, "scores": {}, "error": {"message": "sandbox"}},
]


def test_inspect_logs_in_both_formats(tmp_path):
    wanted = {"7": (1.0,), "a": (1.0, 0.0)}
    log = write(tmp_path / "log.json", {"version": 2, "status": "success", "eval": {}, "samples": SAMPLES})
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("summaries.json", json.dumps(SAMPLES))
    with zipfile.ZipFile(tmp_path / "cut.eval", "w") as archive:  # which was not finished: samples alone
        for number, sample in enumerate(SAMPLES):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
    with packed.ZipFile(
        tmp_path / "zstd.eval", "w", packed.ZIP_ZSTANDARD
    ) as archive:  # as inspect 0.3.285 does
        archive.writestr("summaries.json", json.dumps(SAMPLES))
    for path in (log, tmp_path / "log.eval", tmp_path / "cut.eval", tmp_path / "zstd.eval"):
        found = read_results(path)
        assert (dict(found.scores), found.left_out, found.form) == (wanted, 1, "inspect log")


def test_simulations_of_tau_bench_and_its_successor(tmp_path):
    rows = [{"task_id": 3, "trial": 1, "reward": 0.0}, {"task_id": 3, "trial": 0, "reward": 1.0}]
    old = read_results(write(tmp_path / "old.json", rows))
    new = [
        {"task_id": row["task_id"], "trial": row["trial"], "reward_info": {"reward": row["reward"]}}
        for row in rows
    ]
    new.append({"task_id": 4, "trial": 0, "reward_info": None, "termination_reason": "infrastructure_error"})
    found = read_results(write(tmp_path / "new.json", {"info": {}, "simulations": new}))
    assert dict(old.scores) == dict(found.scores) == {"3": (1.0, 0.0)}
    assert found.left_out == 1


def test_a_report_of_swe_bench_counts_errors_as_its_own_rate_does(tmp_path):
    report = {
        "submitted_ids": ["a", "b", "c"],
        "resolved_ids": ["a"],
        "error_ids": ["c"],
        "total_instances": 3,
    }
    found = read_results(write(tmp_path / "report.json", report))
    assert dict(found.scores) == {"a": (1.0,), "b": (0.0,), "c": (0.0,)}


def test_tables_whose_columns_are_called_otherwise(tmp_path):
    found = read_results(
        write(tmp_path / "a.csv", "\ufeffInstance_ID,Resolved,trial\nx,True,2\nx,false,1\ny,,1\n")
    )
    assert dict(found.scores) == {"x": (0.0, 1.0)}
    assert found.left_out == 1
    for text in ("Task;Score\nx;0,5\ny;1\n", "task\tscore\nx\t0.5\ny\t1\n"):  # as spreadsheets save them
        assert dict(read_results(write(tmp_path / "b.csv", text)).scores) == {"x": (0.5,), "y": (1.0,)}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "task,points\na,1\n", "has the columns task, points"),
        ("a.csv", "task,score\na,1\nb,much\n", "line 3: 'much' is no score"),
        ("a.csv", "task,score\n", "holds no scored episode"),
        ("a.csv", "task,score,trial\na,1,first\n", "line 2: 'first' is no trial"),
        ("a.csv", "task,score\n,1\n", "line 2 names no task"),
        ("a.csv", b"task,score\na\xff,1\n", "UTF-8"),
        (
            "a.json",
            '{"simulations": [{"task_id": 1, "reward": 1}, "cut"]}',
            "simulation 2: 'cut' is no object",
        ),
        ("a.json", '[{"task_id": 1, "reward": "high"}]', "simulation 1: 'high' is no score"),
        (
            "a.json",
            '{"eval": {}, "samples": [{"id": 1, "scores": {"a": {"value": "weird"}}}]}',
            "sample 1: 'weird' is no score",
        ),
        (
            "a.json",
            '{"eval": {}, "samples": [{"id": 1, "scores": {"a": {"value": "C"}}}, 3]}',
            "sample 2: '3' is no object",
        ),
        ("a.json", '{"resolved_ids": "a"}', "is no evaluation"),
        ("a.json", "{", "is not JSON"),
        ("a.json", '{"eval": {}, "samples": []}', "holds no scored episode"),
        (
            "a.json",
            '{"eval": {}, "samples": [{"id": 1, "scores": {"a": {"value": {"x": 1}}}}]}',
            "several values",
        ),
        ("a.json", '{"some": "thing"}', "is no evaluation"),
    ],
)
def test_other_files_are_refused_with_place_and_remedy(tmp_path, name, text, words):
    with pytest.raises(TurnwiseError, match=words) as refused:
        read_results(write(tmp_path / name, text))
    assert refused.value.remedy


def table(label, scores):
    return TaskResults(label, "table", scores)


def test_one_task_tells_no_interval_and_its_json_is_plain():
    found = noise([table("a", {"x": (1.0,)})]).to_json()
    assert found["runs"][0]["interval"] == [None, None]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_pairs_are_corrected_and_told_how_many_tasks_they_need():
    draw = random.Random(3)
    base = {str(n): (float(draw.random() < 0.5),) for n in range(60)}
    better = {task: (max(score, float(draw.random() < 0.4)),) for task, (score,) in base.items()}
    same = {task: (score if draw.random() > 0.1 else 1 - score,) for task, (score,) in base.items()}
    found = noise([table("base", base), table("better", better), table("same", same)])
    first, second, _ = found.pairs
    assert first.adjusted < 0.05 < second.adjusted
    smallest = min(found.pairs, key=lambda pair: pair.difference.p_value)
    assert smallest.adjusted == pytest.approx(3 * smallest.difference.p_value)
    assert second.more is not None
    assert second.more > 60
    assert first.evidence is not None
    assert first.evidence > 20


def test_trials_of_a_task_that_say_the_same_are_one_observation():
    once = run_noise(table("a", {str(n): (float(n < 6),) for n in range(10)}))
    fourfold = run_noise(table("b", {str(n): (float(n < 6),) * 4 for n in range(10)}))
    assert fourfold.estimate.interval == pytest.approx(once.estimate.interval)
    assert (fourfold.flipped, fourfold.floor) == (0.0, 0.0)


@pytest.mark.parametrize(("wins", "losses"), [(40, 20), (25, 8), (90, 60)])
def test_the_tasks_that_are_named_tell_two_apart_in_four_of_five_cases_by_the_exact_test(wins, losses):
    first, second = (
        {str(n): (float(n in won),) for n in range(200)}
        for won in (range(losses), range(losses, losses + wins))
    )
    tasks = noise([table("a", first), table("b", second)]).pairs[0].more
    share = wins / (wins + losses)
    differ = np.arange(tasks + 1)
    refused = binom.ppf(0.025, differ, 0.5) - 1  # the most losses for which p is below 0.05
    assert (2 * binom.cdf(refused, differ, 0.5) < 0.05).all()
    told = binom.cdf(refused, differ, 1 - share) + binom.cdf(refused, differ, share)
    power = (binom.pmf(differ, tasks, (wins + losses) / 200) * told).sum()
    assert 0.78 < power < 0.84


def test_the_floor_is_what_identical_runs_differ_by():
    """Tasks with chances of their own, each run once: 95 % of the differences of two runs lie within the floor."""
    draw = random.Random(0)
    chances = [draw.random() for _ in range(80)]
    many = table(
        "a", {str(n): tuple(float(draw.random() < p) for _ in range(60)) for n, p in enumerate(chances)}
    )
    floor = run_noise(many).floor
    assert floor is not None
    gaps = [abs(sum((draw.random() < p) - (draw.random() < p) for p in chances)) / 80 for _ in range(2000)]
    assert 0.93 < sum(gap <= floor + 1e-12 for gap in gaps) / len(gaps) < 0.98


def test_looking_again_and_again_does_not_raise_false_alarms():
    """Two equal policies, looked at after every task on which they differ: at most one of twenty series reaches 20."""
    draw, alarms, series = random.Random(1), 0, 400
    for number in range(series):
        evidence, wins, losses = 1.0, 0, 0
        for _ in range(150):  # the e-value step by step: the next task is foretold by (wins + 1)/(m + 2)
            won = draw.random() < 0.5
            share = (wins + 1) / (wins + losses + 2)
            evidence *= 2 * (share if won else 1 - share)
            wins, losses = wins + won, losses + (not won)
            if evidence >= 20:
                alarms += 1
                break
        if number < 20:
            before = table("a", {str(n): (float(n >= wins),) for n in range(wins + losses)})
            after = table("b", {str(n): (float(n < wins),) for n in range(wins + losses)})
            assert noise([before, after]).pairs[0].evidence == pytest.approx(evidence)
    assert alarms / series <= 0.05


def test_the_verb_prints_and_answers(tmp_path, capfd):
    from turnwise.cli import main

    a = write(tmp_path / "a.csv", "task,score,trial\nx,1,1\nx,0,2\ny,1,1\ny,1,2\n")
    b = write(tmp_path / "b.csv", "task,score\nx,0\ny,0\n")
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--noise", str(a), str(b), "--json"])
    answer = json.loads(capfd.readouterr().out)
    assert not ended.value.code
    assert answer["runs"][0]["flipped"] == 0.5
    assert answer["pairs"][0]["difference"] == -0.75
    with pytest.raises(SystemExit):
        main(["compare", "--noise", str(a), str(b)])
    assert "not told apart" in capfd.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--noise", str(a), "--baseline", str(b)])
    assert ended.value.code
