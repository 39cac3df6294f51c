import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.statistics import (
    clustered_mean,
    pass_at_k,
    pass_hat_k,
    proportion,
    score_mean,
    wilson,
)
from turnwise.errors import TurnwiseError

counts = st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
clustered = st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=2, max_size=8).map(
    lambda runs: ([x for run in runs for x in run], [g for g, run in enumerate(runs) for _ in run])
)


@given(counts)
def test_pass_at_k_and_pass_hat_k_are_what_drawing_k_runs_gives(ncK):
    n, c, k = ncK
    runs = [True] * c + [False] * (n - c)
    draws = list(itertools.combinations(runs, k)) if math.comb(n, k) <= 2000 else []
    if draws:
        assert pass_at_k(n, c, k) == pytest.approx(sum(any(d) for d in draws) / len(draws))
        assert pass_hat_k(n, c, k) == pytest.approx(sum(all(d) for d in draws) / len(draws))
    assert pass_hat_k(n, c, k) <= c / n + 1e-12 <= pass_at_k(n, c, k) + 2e-12
    assert pass_at_k(n, c, k) == pytest.approx(1 - pass_hat_k(n, n - c, k))  # any fails ⇔ not all succeed


def test_pass_at_k_is_never_extrapolated():
    with pytest.raises(TurnwiseError, match="at least k times"):
        pass_at_k(3, 1, 4)


def test_golden_intervals():
    # By hand in the docstrings; here the same formulas on other numbers.
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=5e-5)
    # statsmodels.stats.proportion.proportion_confint(18, 20, method="wilson")
    assert wilson(18, 20) == pytest.approx((0.698966, 0.972134), abs=5e-7)
    # One episode per task is the textbook t interval: mean 2.5, s = 1.29099, t(0.975; 3) = 3.182446.
    mean, (low, high), _, _ = clustered_mean([1, 2, 3, 4], "abcd")
    assert (mean, high - mean) == pytest.approx((2.5, 3.182446 * 1.290994 / 2), rel=1e-6)
    assert low == pytest.approx(5 - high)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_mirrors(cn):
    c, n = cn
    low, high = wilson(c, n)
    assert 0 <= low <= c / n <= high <= 1
    assert wilson(n - c, n) == pytest.approx((1 - high, 1 - low))


@pytest.mark.slow
@given(clustered)
def test_one_episode_per_task_is_plain_wilson(data):
    values, _ = data
    plain = wilson(sum(values), len(values))
    assert proportion(values, range(len(values))).interval == pytest.approx(plain)


@pytest.mark.slow
@given(clustered, st.randoms(use_true_random=False))
def test_order_does_not_matter(data, random):
    pairs = list(zip(*data, strict=True))
    random.shuffle(pairs)
    shuffled = tuple(zip(*pairs, strict=True))
    for estimate in (proportion, clustered_mean, score_mean):
        a, b = estimate(*data), estimate(*shuffled)
        assert a.mean == pytest.approx(b.mean)
        assert a.interval == pytest.approx(b.interval)


@given(clustered, st.integers(2, 4))
def test_repeating_every_episode_of_a_task_is_no_new_evidence(data, times):
    values, tasks = data
    once, many = clustered_mean(values, tasks), clustered_mean(values * times, tasks * times)
    assert many.interval == pytest.approx(once.interval)
    # … where a naive interval would shrink by √times.


def test_copies_of_one_run_count_once_in_a_proportion():
    runs, tasks = [True, False, True, True, False, True], list("abcdef")
    single, copied = proportion(runs, tasks).interval, proportion(runs * 8, tasks * 8).interval
    assert copied == pytest.approx(single, abs=0.05)
    assert proportion([True] * 40, list(range(10)) * 4).interval == pytest.approx(wilson(10, 10))


def test_intervals_cover_the_truth():
    """200 suites of 40 tasks × 4 runs whose tasks differ in difficulty: about 95 % of intervals hold it."""
    rng = np.random.default_rng(7)
    held = {proportion: 0, clustered_mean: 0}
    for _ in range(200):
        difficulty = rng.beta(0.7, 0.7, size=40)  # mean 0.5, strongly correlated within a task
        runs = (rng.random((4, 40)) < difficulty).ravel()
        for estimate in held:
            low, high = estimate(runs.tolist(), list(range(40)) * 4).interval
            held[estimate] += low <= 0.5 <= high
    for name, hits in held.items():
        assert 0.90 <= hits / 200 <= 0.99, name
    naive = sum(
        wilson(c, 160).low <= 0.5 <= wilson(c, 160).high
        for c in (rng.binomial(4, rng.beta(0.7, 0.7, (200, 40))).sum(-1))
    )
    assert naive / 200 < 0.88  # what ignoring the clusters would have claimed


SCORES = {  # as (tasks, runs) of scores
    "graded": lambda rng, g, k: 0.7 * rng.beta(2, 5, (g, 1)) + 0.3 * rng.beta(2, 5, (g, k)),
    "rarely solved": lambda rng, g, k: (rng.random((g, k)) < 0.05).astype(float),
    "mostly solved": lambda rng, g, k: np.where(rng.random((g, k)) < 0.9, 1.0, rng.random((g, k))),
    "mostly nothing": lambda rng, g, k: np.where(rng.random((g, 1)) < 0.8, 0.0, rng.random((g, k))),
    "thirds": lambda rng, g, k: rng.binomial(3, rng.beta(1, 1, (g, 1)), (g, k)) / 3,
}
TRUE_MEAN = {
    "graded": 2 / 7, "rarely solved": 0.05, "mostly solved": 0.95, "mostly nothing": 0.1, "thirds": 0.5
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize(("tasks", "runs"), [(5, 1), (10, 1), (20, 4), (60, 1)])
def test_score_intervals_cover_the_truth_and_stay_between_0_and_1(kind, tasks, runs):
    rng = np.random.default_rng(11)
    held, labels = 0, [task for task in range(tasks) for _ in range(runs)]
    for _ in range(200):
        scores = SCORES[kind](rng, tasks, runs).ravel().tolist()
        mean, (low, high), _, _ = score_mean(scores, labels)
        assert 0 <= low <= mean <= high <= 1
        held += low <= TRUE_MEAN[kind] <= high
    assert held / 200 >= 0.90, held / 200


def test_the_plain_interval_fails_where_scores_are_near_a_bound():
    """Why :func:`score_mean` exists: 10 tasks, most of them not solved."""
    rng = np.random.default_rng(11)
    held = outside = 0
    for _ in range(200):
        low, high = clustered_mean(SCORES["rarely solved"](rng, 10, 1).ravel().tolist(), range(10)).interval
        held += low <= 0.05 <= high
        outside += low < 0
    assert held / 200 < 0.6
    assert outside / 200 > 0.3


@pytest.mark.slow
@given(clustered, st.integers(2, 4))
def test_score_intervals_mirror_and_copies_are_no_new_evidence(data, times):
    values, tasks = [float(value) for value in data[0]], data[1]
    low, high = score_mean(values, tasks).interval
    assert score_mean([1 - x for x in values], tasks).interval == pytest.approx((1 - high, 1 - low))
    assert score_mean(values * times, tasks * times).interval == pytest.approx((low, high))


def test_score_intervals_at_the_edges():
    assert score_mean([0.3] * 8, range(8)).interval == pytest.approx(
        score_mean([0.3] * 16, [*range(8)] * 2).interval
    )
    low, high = score_mean([0.3] * 8, range(8)).interval
    assert 0.05 < low < 0.3 < high < 0.75  # eight tasks that happen to agree are no certainty
    assert score_mean([0.2, 0.4], [0, 0]).interval == (-math.inf, math.inf)  # one task
    beyond = [-1.0, 0.5, 1.0, 0.0]
    assert score_mean(beyond, range(4)) == clustered_mean(beyond, range(4))
    many = np.random.default_rng(0).random(5000).tolist()  # far from the bounds it is the plain interval
    assert score_mean(many, range(5000)).interval == pytest.approx(
        clustered_mean(many, range(5000)).interval, abs=1e-4
    )


def test_compare_golden():
    # Three of ten tasks differ, all one way: the means of subsets without one of these three are at most 4/6.
    a, b = [1, 1, 0, 1, 0, 1, 1, 0, 1, 1], [1, 0, 0, 1, 0, 0, 1, 0, 1, 0]
    result = paired_difference({str(i): [x] for i, x in enumerate(b)}, {str(i): [x] for i, x in enumerate(a)})
    assert result.difference == pytest.approx(0.3)
    assert result.p_value == pytest.approx(0.25)  # three discordant, all one way: 2 · 1/8
    assert result.interval == pytest.approx((0.0, 2 / 3), abs=1e-9)
    assert not result.significant
    assert "p < 0.05 is impossible where 3 tasks differ" in str(result)
    assert "not significant" in str(result)
    one = paired_difference({"a": [0], "b": [1]}, {"a": [1], "b": [1]})
    assert "is impossible where 1 task differs" in str(one)


def test_compare_says_significant_and_counts_what_it_left_out():
    before = {str(i): [0.0, 0.0, float(i % 3 == 0)] for i in range(40)} | {"only here": [1.0]}
    after = {str(i): [1.0, float(i % 2), 1.0] for i in range(40)}
    result = paired_difference(before, after)
    assert result.significant
    assert (result.n, result.unpaired, result.method) == (40, 1, "sign-flip test")
    assert result.interval.low > 0.5
    assert "difference is significant:" in str(result)
    assert result.to_json()["significant"] is True


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_compare_is_antisymmetric(pairs):
    before = {str(i): [float(a)] for i, (a, _) in enumerate(pairs)}
    after = {str(i): [float(b)] for i, (_, b) in enumerate(pairs)}
    there, back = paired_difference(before, after), paired_difference(after, before)
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_value == pytest.approx(back.p_value)
    assert paired_difference(before, before).p_value == 1.0


def test_the_interval_leaves_zero_out_exactly_where_the_test_is_significant():
    rng = np.random.default_rng(3)
    seen = set()
    for tasks, runs, gain in itertools.product((2, 5, 6, 10, 14, 40), (1, 2, 4), (0.0, 0.15, 0.3, 0.6)):
        chance = rng.random(tasks) * (1 - gain)
        before, after = (
            {str(i): (rng.random(runs) < p + more).astype(float).tolist() for i, p in enumerate(chance)}
            for more in (0.0, gain)
        )
        found = paired_difference(before, after)
        low, high = found.interval
        assert found.significant == (not low <= 0 <= high), (tasks, runs, gain, found)
        assert -1 <= low <= found.difference <= high <= 1 or found.difference == 0
        assert not (found.limit and found.significant)
        seen.add(found.significant)
    assert seen == {True, False}


def test_five_tasks_that_differ_say_why_they_prove_nothing():
    before = {str(i): [0.0, 0.0] for i in range(10)}
    after = {str(i): [1.0, float(i > 2)] if i < 5 else [0.0, 0.0] for i in range(10)}
    found = paired_difference(before, after)
    assert (found.p_value, found.interval.low) == (0.0625, 0.0)
    assert "p = 0.062; p < 0.05 is impossible where 5 tasks differ" in str(found)


def test_the_interval_of_a_paired_difference_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(5)
    missed = 0
    for trial in range(120):
        chance = rng.random(24) * 0.7
        before, after = (
            {str(i): (rng.random(2) < p + more).astype(float).tolist() for i, p in enumerate(chance)}
            for more in (0.0, 0.2)
        )
        low, high = paired_difference(before, after, seed=trial).interval
        missed += not low <= 0.2 <= high
    assert missed <= 13  # P(more than 13 of 120 | 5 %) < 0.5 %


def test_false_alarms_are_as_rare_as_promised():
    """Two equal policies, 60 comparisons of 30 tasks × 3 runs: about 5 % at most come out significant."""
    rng = np.random.default_rng(1)
    alarms = 0
    for trial in range(60):
        chance = rng.random(30)
        sides = [
            {str(i): (rng.random(3) < p).astype(float).tolist() for i, p in enumerate(chance)}
            for _ in range(2)
        ]
        alarms += paired_difference(*sides, seed=trial).significant
    assert alarms <= 8  # P(more than 8 of 60 | 5 %) = 0.2 %


def test_nothing_in_common():
    with pytest.raises(TurnwiseError, match="same suite"):
        paired_difference({"a": [1.0]}, {"b": [1.0]})
