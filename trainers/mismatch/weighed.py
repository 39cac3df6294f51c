"""An explanation set against the log."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation


class Weighed(NamedTuple):
    """An explanation with the share of the differences that it leaves, the number of tokens on which that was seen, and what is left in units."""

    explanation: Explanation
    left: float
    tokens: int
    rest: float


def weigh(case: MismatchCase, explanation: Explanation) -> Weighed:
    """Compare an explanation with the log."""
    if explanation.expected_N is None:
        return Weighed(explanation, 1.0, 0, math.inf)
    seen_N = case.looked_N & np.isfinite(explanation.expected_N)
    after_N = np.abs((case.logged_N - explanation.expected_N) / case.unit_N)
    rest = float(after_N[seen_N].mean()) if seen_N.any() else math.inf
    return Weighed(explanation, case.left(explanation.expected_N, seen_N), int(seen_N.sum()), rest)
