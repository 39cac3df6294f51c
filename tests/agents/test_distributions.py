"""The distributions of an evaluation against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from lazily import Lazily, needs

from turnwise.agents.evaluation.distributions import (
    fair_coin_p_value,
    normal_quantile,
    normal_tail,
    sign_flip_p_value,
    t_quantile,
    t_tail,
)

needs("scipy")
stats = Lazily("scipy.stats")
FREEDOMS = (1, 1.7, 2, 3, 7.25, 30, 199, 2_000, 1e6)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_the_tail_of_t_is_scipys(freedom: float) -> None:
    for t in (-30.0, -1.3, 0.0, 1e-6, 0.4, 1.96, 5.0, 25.0, 300.0):
        assert t_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=2e-9, abs=1e-300)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_the_quantile_of_t_is_scipys(freedom: float) -> None:
    for p in (0.005, 0.025, 0.5, 0.8, 0.95, 0.975, 0.995, 0.9995):
        assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=2e-9)


@pytest.mark.parametrize(("p", "freedom"), [(0.0, 3), (1.0, 3), (1.2, 3), (-0.1, 3), (0.9, 0), (0.9, -1)])
def test_a_quantile_of_t_that_is_not_there_is_refused(p: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="has no quantile"):
        t_quantile(p, freedom)


def test_the_normal_distribution_is_scipys() -> None:
    for p in (1e-9, 0.025, 0.5, 0.9, 0.975, 0.9999):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-12)
    for z in (-8.0, -0.5, 0.0, 1.0, 5.0, 30.0):
        assert normal_tail(z) == pytest.approx(stats.norm.sf(z), rel=1e-12)


def test_the_fair_coin_is_scipys() -> None:
    for tosses in (1, 2, 9, 40, 1_001):
        for heads in {0, 1, tosses // 3, tosses // 2, tosses}:
            wanted = stats.binomtest(heads, tosses).pvalue
            assert fair_coin_p_value(heads, tosses) == pytest.approx(wanted, rel=1e-9)
    assert fair_coin_p_value(0, 0) == 1.0


@pytest.mark.parametrize("size", [2, 5, 13, 14, 60])
def test_flipped_signs_are_scipys_and_exact_where_they_are_few(size: int) -> None:
    values = np.random.default_rng(size).normal(0.3, 1.0, size)
    wanted = stats.permutation_test(
        (values,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=10_000, rng=np.random.default_rng(0),
    ).pvalue  # fmt: skip
    exact = 2**size <= 10_000
    assert sign_flip_p_value(values, 10_000, 0) == pytest.approx(wanted, abs=1e-12 if exact else 0.02)


def test_flipped_signs_count_ties_on_both_sides() -> None:
    assert sign_flip_p_value(np.array([0.1] * 3 + [0.0] * 5), 10_000, 0) == 0.25
    assert sign_flip_p_value(np.ones(500), 10_000, 0) == pytest.approx(2 / 10_001)
