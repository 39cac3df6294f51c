"""Evidence in which tokens were chosen, where the log-probabilities themselves are right.

For a fixed alternative the product over tokens of q(token)/p(token) has expectation 1 under the model, so it is an e-value: it reaches x with a
chance of at most 1/x. So is an average of such products, over settings and over the parts of the log that may be concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import FaultPlace, Floats, Truths

ENOUGH = 9.2
"""Evidence from which on a fault is named, in nats: a log without one reaches it with a chance of at most 1 in 10,000."""


class ChoiceEvidence(NamedTuple):
    """The logarithm of an e-value, and the tokens of the part of the log that speaks most for the alternative."""

    nats: float
    part_N: Truths


def averaged(nats: Sequence[float], shares: Sequence[float] = ()) -> float:
    """Return the logarithm of the mean of e-values that are given by their logarithms, weighed by shares that sum to 1."""
    if not nats:
        return -np.inf
    weights = np.array(shares) if len(shares) else np.full(len(nats), 1 / len(nats))
    return float(np.logaddexp.reduce(np.array(nats) + np.log(weights)))


def evidence(case: MismatchCase, ratio_N: Floats, usable_N: Truths) -> ChoiceEvidence:
    """Weigh an alternative by log q/p of each token, −∞ where it never gives the token: over all, from some row on, from some turn on, and in some rows."""
    whole = np.where(usable_N, ratio_N, 0.0)
    parts = list(_parts(case))
    sums = [float(whole[part_N].sum()) for _, part_N in parts]
    by_kind: dict[str, list[float]] = {}
    for (kind, _), nats in zip(parts, sums, strict=True):
        by_kind.setdefault(kind, []).append(nats)
    rows = np.array([whole[case.row_N == row].sum() for row in range(len(case.rows))])
    mixed = float(np.logaddexp(np.log(0.5), np.log(0.5) + rows).sum())
    total = averaged([averaged(nats) for nats in by_kind.values()] + [mixed])
    best = int(np.argmax(sums))
    some_N = np.isin(case.row_N, np.flatnonzero(rows > 0))
    return ChoiceEvidence(total, parts[best][1] if sums[best] >= mixed else some_N)


def _parts(case: MismatchCase) -> Iterator[tuple[str, Truths]]:
    yield "all", np.ones(len(case.row_N), bool)
    for row in range(1, len(case.rows)):
        yield "rows", case.row_N >= row
    for turn in range(1, int(case.turn_N.max(initial=0)) + 1):
        yield "turns", case.turn_N >= turn


def usable(case: MismatchCase) -> Truths:
    """Tokens whose choice tells something: those of rows that agree with the model, and that were not drawn greedily."""
    agrees_N = ~np.isin(case.row_N, np.unique(case.row_N[case.affected_N]))
    return agrees_N & np.array([declared.temperature > 0 for declared in case.declared_N])


def begins(case: MismatchCase, part_N: Truths) -> FaultPlace | None:
    """The first token of a part."""
    found = np.flatnonzero(part_N)
    return case.place(int(found[0])) if len(found) else None
