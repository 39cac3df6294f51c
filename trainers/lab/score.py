"""Scores of a credit rule on a batch: agreement with the true advantages, and the update it makes.

Every figure comes with draws of a bootstrap over groups, the unit in which episodes are independent: a
column of ``weights`` per draw says how often each group was drawn, the first column takes each once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from turnwise.trainers.core import Credit
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.lab.exact import compare, expected_update
from turnwise.trainers.lab.truth import TrueAdvantageBatch

Draws: TypeAlias = NDArray[np.float64]
"""A figure on the whole batch, then on each bootstrap draw; (1 + D,)."""
FIGURES: Mapping[str, str] = {
    "correlation": "with the true advantages, over turns (Pearson)",
    "rank_correlation": "the same of ranks (Spearman)",
    "sign_accuracy": "share of the turns that truly matter whose sign is right; 0 counts half",
    "bias": "mean of A/s − truth in standard deviations of the truth, s the slope of A on it; median over batches",
    "noise": "variance of A/s − truth relative to that of the truth; median over batches",
    "gradient_cosine": "of this batch's update with the exact gradient",
    "expected_cosine": "of the expected update with the exact gradient, by enumeration",
    "expected_variance": "of the update of a group of 3, in squared lengths of the gradient, by enumeration; values "
    "(also those of forks) exact; median over batches",
}
"""Figures that are measured; the last three where the exact gradient is known."""
MEDIANS = frozenset({"bias", "noise", "expected_variance"})  # the others are means over batches
SURE = 2.0  # a true advantage counts for its sign if it is so many standard errors from 0
ENUMERATED = 3  # size of the groups whose expected update is enumerated


class BatchScore(NamedTuple):
    """Results of a rule on one batch."""

    figures: dict[str, Draws]
    seconds: float
    given_BK: torch.Tensor


def bootstrap(groups: int, draws: int, seed: int) -> NDArray[np.float64]:
    """Draw how often each group is taken, (1 + draws, groups); the first row is all ones."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=draws)
    return np.concatenate([np.ones((1, groups)), drawn]).astype(np.float64)


def score_rule(credit: Credit, true_batch: TrueAdvantageBatch, weights: NDArray[np.float64]) -> BatchScore:
    """Give the batch's episodes their credit and compare it with the truth."""
    began = time.perf_counter()
    advantage_BK = on_turns(credit(true_batch.turns), true_batch.turns).double()
    seconds = time.perf_counter() - began
    mask_BK = true_batch.turns.mask_BK
    group_N = true_batch.turns.group_B[:, None].expand_as(mask_BK)[mask_BK].numpy()
    given_N, truth_N, error_N = (
        x[mask_BK].double().numpy() for x in (advantage_BK, true_batch.truth_BK, true_batch.error_BK)
    )
    figures = {
        "correlation": _moments(given_N, truth_N, group_N, weights)["correlation"],
        "rank_correlation": _moments(rankdata(given_N), rankdata(truth_N), group_N, weights)["correlation"],
        "sign_accuracy": _signs(given_N, truth_N, error_N, group_N, weights),
        **{k: v for k, v in _moments(given_N, truth_N, group_N, weights).items() if k != "correlation"},
    }
    if true_batch.exact is not None:
        figures |= _gradients(credit, true_batch, advantage_BK, weights)
    return BatchScore(figures, seconds, advantage_BK)


def _per_group(x_N: NDArray[np.float64], group_N: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    return np.bincount(group_N, weights=x_N, minlength=groups).astype(np.float64)


def _moments(
    a_N: NDArray[np.float64],
    t_N: NDArray[np.float64],
    group_N: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> dict[str, Draws]:
    """Correlation, bias and noise from sums per group."""
    groups = weights.shape[1]
    n, a, t, aa, tt, at = (
        weights @ _per_group(x, group_N, groups)
        for x in (np.ones_like(a_N), a_N, t_N, a_N * a_N, t_N * t_N, a_N * t_N)
    )
    a, t, aa, tt, at = a / n, t / n, aa / n, tt / n, at / n
    var_a, var_t, cov = np.maximum(aa - a * a, 0), np.maximum(tt - t * t, 0), at - a * t
    with np.errstate(divide="ignore", invalid="ignore"):  # a draw in which nothing differs
        correlation = np.where((var_a > 1e-18) & (var_t > 1e-18), cov / np.sqrt(var_a * var_t), 0.0)
        slope = np.where(var_t > 1e-18, cov / var_t, 0.0)
        bias = (a / slope - t) / np.sqrt(var_t)
        noise = (var_a / slope**2 - var_t) / var_t
    useless = slope <= 1e-9  # it says nothing, or the opposite: no scale brings it to the truth
    return {
        "correlation": correlation,
        "bias": np.where(useless, np.nan, bias),
        "noise": np.where(useless, np.inf, noise),
    }


def _signs(
    a_N: NDArray[np.float64],
    t_N: NDArray[np.float64],
    error_N: NDArray[np.float64],
    group_N: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> Draws:
    counts_N = (np.abs(t_N) > np.maximum(SURE * error_N, 1e-9)).astype(np.float64)
    right_N = counts_N * np.where(np.abs(a_N) < 1e-12, 0.5, np.sign(a_N) == np.sign(t_N))
    groups = weights.shape[1]
    total = weights @ _per_group(counts_N, group_N, groups)
    return (weights @ _per_group(right_N, group_N, groups)) / np.maximum(total, 1e-9)


def _gradients(
    credit: Credit, true_batch: TrueAdvantageBatch, advantage_BK: torch.Tensor, weights: NDArray[np.float64]
) -> dict[str, Draws]:
    """The update of this batch and the expected one, against the exact gradient."""
    p, index_B = true_batch.exact, true_batch.index_B
    assert p is not None
    assert index_B is not None
    exact_SA = p.policy_gradient()
    update_BSA = torch.einsum("bk,bksa->bsa", advantage_BK, p.score_NKSA[index_B].double())
    groups = weights.shape[1]
    update_GX = torch.zeros(groups, exact_SA.numel(), dtype=torch.float64)
    update_GX.index_add_(0, true_batch.turns.group_B, update_BSA.flatten(1))
    drawn_DX, exact_X = weights @ update_GX.numpy(), exact_SA.flatten().numpy()
    length_D = np.maximum(np.linalg.norm(drawn_DX, axis=1), 1e-300)
    cosine_D = drawn_DX @ exact_X / length_D / np.linalg.norm(exact_X)
    expected = expected_update(credit, p, ENUMERATED, batch_signals(true_batch))
    bias = compare(expected.mean_SA, exact_SA)
    straight = np.sign(bias.scale) * np.sqrt(max(0.0, 1 - bias.angle**2))
    scale = max(bias.scale, 0.0) ** 2 * float((exact_SA**2).sum())
    variance = expected.variance / scale if bias.scale > 1e-3 else np.inf
    whole = np.ones(len(weights))
    return {
        "gradient_cosine": cosine_D,
        "expected_cosine": straight * whole,
        "expected_variance": variance * whole,
    }


def batch_signals(true_batch: TrueAdvantageBatch) -> dict[str, torch.Tensor]:
    """The signals of all trajectories of a batch's process, as far as the batch has them."""
    from turnwise.trainers.lab.processes import signals

    assert true_batch.exact is not None
    return {name: x for name, x in signals(true_batch.exact).items() if name in true_batch.turns.measured}
