"""Shares of suites before a long run, from the scores of a few short ones: ``python -m turnwise.trainers.lab.mixture_plan TABLE.json``.

MoDoMoDo (row 175 of docs/papers.md): each short run trains on a mixture of suites (each suite alone, all but one, all alike, some by chance), and is scored on the same
held-out tasks. A quadratic ŷ(w) = b₀ + Σ b_i·w_i + Σ_{i≤j} c_ij·w_i·w_j is fitted to the scores by least squares, and the planned mixture is where it is highest
on the simplex. Weights sum to 1, so the last suite's b and its products are left out. A linear fit puts all on one suite. The table is
``[{"weights": {"household/easy": 0.75, "shop/quick": 0.25}, "score": 0.49}, …]``; weights need not sum to 1, and a suite that a run does not name has 0.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from turnwise.errors import TurnwiseError

RIDGE = 1e-3
"""Of the coefficients but b₀, where there are fewer runs than coefficients."""
STEPS = {1: 1, 2: 400, 3: 100, 4: 40}
"""Steps of the grid from 0 to 1 by the number of suites; with more of them all halves are tried. Finer ones around the best follow."""


class ScoredMixture(NamedTuple):
    """Weights by suite, and what a run on them scored."""

    weights: Mapping[str, float]
    score: float


class MixturePlan(NamedTuple):
    """The shares that the fit finds best, and the score that it expects there."""

    shares: Mapping[str, float]
    score: float


def planned(runs: Sequence[ScoredMixture]) -> MixturePlan:
    """The best mixture by a quadratic fit to the scores of these.

    The book's five runs: ŷ = 0.40 + 0.36·w − 0.32·w², which is highest at 0.5625.

    >>> runs = [ScoredMixture({"a": w, "b": 1 - w}, y) for w, y in [(0, 0.40), (0.25, 0.47), (0.5, 0.50), (0.75, 0.49), (1, 0.44)]]
    >>> plan = planned(runs)
    >>> {name: round(share, 4) for name, share in plan.shares.items()}, round(plan.score, 4)
    ({'a': 0.5625, 'b': 0.4375}, 0.5012)
    >>> [round(x, 2) for x in coefficients(*design(runs))]
    [0.4, 0.36, -0.32]

    Raises:
        TurnwiseError: there are no two runs of different mixtures, or weights are none.
    """
    suites, shares_RD, score_R = _table(runs)
    beta_F = coefficients(_features(shares_RD), score_R)
    best_D, found = _best(np.array([*_simplex(len(suites), STEPS.get(len(suites), 2))]), beta_F)
    width = 0.1
    while width > 1e-6:
        near_D, near = _best(np.array([best_D, *_around(best_D, width)]), beta_F)
        if near > found + 1e-12:
            best_D, found = near_D, near
        else:
            width /= 2
    return MixturePlan(dict(zip(suites, map(float, best_D), strict=True)), found)


def _best(shares_GD: Any, beta_F: Sequence[float]) -> tuple[Any, float]:
    """The mixture with the highest fitted score among these, and that score."""
    fitted_G = _features(shares_GD) @ np.asarray(beta_F)
    best = int(np.argmax(fitted_G))
    return shares_GD[best], float(fitted_G[best])


def design(runs: Sequence[ScoredMixture]) -> tuple[Any, Any]:
    """The features of each run and its score."""
    _, shares_RD, score_R = _table(runs)
    return _features(shares_RD), score_R


def coefficients(feature_RF: Any, score_R: Any) -> list[float]:
    """Least squares; with a ridge on all but the first where there are fewer runs than coefficients."""
    R, F = feature_RF.shape
    if R >= F and np.linalg.matrix_rank(feature_RF) == F:
        return np.linalg.lstsq(feature_RF, score_R, rcond=None)[0].tolist()
    penalty_FF = RIDGE * np.eye(F)
    penalty_FF[0, 0] = 0.0
    return np.linalg.solve(feature_RF.T @ feature_RF + penalty_FF, feature_RF.T @ score_R).tolist()


def _table(runs: Sequence[ScoredMixture]) -> tuple[list[str], Any, Any]:
    suites = sorted({name for one in runs for name in one.weights})
    weights_RD = np.array([[float(one.weights.get(name, 0.0)) for name in suites] for one in runs])
    if not runs or (weights_RD < 0).any() or (weights_RD.sum(1) <= 0).any():
        raise TurnwiseError(
            "A run's weights are below 0, or all 0.", "Give each run the weights of its suites."
        )
    shares_RD = weights_RD / weights_RD.sum(1, keepdims=True)
    if len({tuple(row) for row in shares_RD.round(9).tolist()}) < 2:
        raise TurnwiseError(
            "There are no two runs of different mixtures.", "Train on some, each suite alone among them."
        )
    return suites, shares_RD, np.array([one.score for one in runs])


def _features(shares_RD: Any) -> Any:
    """1, the shares but the last, and their products."""
    free_RD = shares_RD[:, :-1]
    pairs = itertools.combinations_with_replacement(range(free_RD.shape[1]), 2)
    products = [free_RD[:, i] * free_RD[:, j] for i, j in pairs]
    return np.stack([np.ones(len(free_RD)), *free_RD.T, *products], axis=1)


def _simplex(suites: int, steps: int) -> Iterator[list[float]]:
    """All shares that are multiples of 1/steps."""
    for cuts in itertools.combinations(range(steps + suites - 1), suites - 1):
        edges = [-1, *cuts, steps + suites - 1]
        yield [(b - a - 1) / steps for a, b in itertools.pairwise(edges)]


def _around(shares_D: Any, width: float) -> Iterator[Any]:
    """Shares of which one suite gave up to ``width`` to another one."""
    for i, j in itertools.permutations(range(len(shares_D)), 2):
        one_D = shares_D.copy()
        moved = min(width, float(shares_D[i]))
        one_D[i] -= moved
        one_D[j] += moved
        yield one_D


def read(path: Path) -> list[ScoredMixture]:
    """The runs of a table.

    Raises:
        TurnwiseError: it is no such table.
    """
    try:
        rows = json.loads(path.read_text("utf-8"))
        return [
            ScoredMixture({str(name): float(w) for name, w in row["weights"].items()}, float(row["score"]))
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TurnwiseError(
            f"{path} is no table of scored mixtures: {error!r}.",
            'Write [{"weights": {"SUITE": 1.0}, "score": 0.5}, …].',
        ) from None


def main(path: str) -> None:
    """Write the planned shares as a recipe has them."""
    plan = planned(read(Path(path)))
    shares = ", ".join(f"{name}: {share:.4f}" for name, share in plan.shares.items() if share >= 5e-5)
    sys.stdout.write(f"suite: {{{shares}}}  # a score of {plan.score:.4f} by the fit\n")


if __name__ == "__main__":
    main(sys.argv[1])
