"""Tokens drawn at another temperature than is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.choices import averaged, begins, evidence, usable
from turnwise.trainers.mismatch.core import Explanation, Floats, detects
from turnwise.trainers.mismatch.sampled import ALL, Likeliest, betas, kept_as_declared

TRIED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0)


@detects(cost=0)
def temperature(case: MismatchCase) -> Iterator[Explanation]:
    """Fit the temperature to the log-probabilities, and weigh others by the tokens that were chosen."""
    yield from _of_numbers(case)
    yield from _of_choices(case)


def _of_numbers(case: MismatchCase) -> Iterator[Explanation]:
    index_M = np.flatnonzero(case.looked_N)
    if len(index_M) < 5:
        return
    found, logged_M, unit_M = case.found.at(index_M), case.logged_N[index_M], case.unit_N[index_M]

    def miss(temperature: float) -> float:
        expected_M = found.tempered(np.full(len(index_M), 1 / temperature))
        return float(np.minimum(np.abs(logged_M - expected_M) / unit_M, 5.0).mean())

    fitted = _least(miss, np.geomspace(0.13, 5.0, 60))
    expected_N = np.full(len(case.row_N), np.nan)
    expected_N[index_M] = found.tempered(np.full(len(index_M), 1 / fitted))
    yield Explanation("temperature", _words(case, fitted), expected_N, data={"temperature": round(fitted, 4)})


def _least(miss: Callable[[float], float], grid: Floats) -> float:
    """Return the temperature with the least miss: the best of a grid, then of ever finer ones around it."""
    for _ in range(4):
        best = int(np.argmin([miss(float(x)) for x in grid]))
        grid = np.geomspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 13)
    return float(grid[int(np.argmin([miss(float(x)) for x in grid]))])


def _of_choices(case: MismatchCase) -> Iterator[Explanation]:
    usable_N = usable(case)
    if not usable_N.any():
        return
    beta_N = betas(case.declared_N)
    kept_N = kept_as_declared(case.found, case.declared_N)
    believed_N = _chosen(case, beta_N, kept_N)
    tried = [
        (t, evidence(case, _chosen(case, np.full(len(beta_N), 1 / t), kept_N) - believed_N, usable_N))
        for t in TRIED
    ]
    best, found = max(tried, key=lambda pair: pair[1].nats)
    yield Explanation(
        "temperature",
        _words(case, best) + ", as the tokens say; the log-probabilities are those of the model itself",
        evidence=averaged([one.nats for _, one in tried]),
        begins=begins(case, found.part_N),
        data={"temperature": best, "raw": True},
    )


def _chosen(case: MismatchCase, beta_N: Floats, kept_N: np.ndarray) -> Floats:
    """Log-probability of drawing the tokens at inverse temperatures, among the tokens that are kept."""
    chosen_N = case.found.tempered(beta_N)
    return (
        chosen_N
        if (kept_N == ALL).all()
        else chosen_N - np.log(Likeliest.of(case.found.top(beta_N)).mass(kept_N))
    )


def _words(case: MismatchCase, temperature: float) -> str:
    declared = sorted({one.temperature for one in case.declared_N})
    told = " or ".join(f"{t:g}" for t in declared)
    return f"{temperature:.3g} in place of {told}"
