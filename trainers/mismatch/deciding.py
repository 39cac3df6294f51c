"""From explanations of a log to one answer."""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from collections.abc import Sequence

import numpy as np

from turnwise.trainers.mismatch import faults
from turnwise.trainers.mismatch.case import FEWEST as FEW
from turnwise.trainers.mismatch.case import FLOAT32, MEAN, NOTHING, MismatchCase
from turnwise.trainers.mismatch.choices import ENOUGH
from turnwise.trainers.mismatch.core import COST, NUMBERS, Detector, MismatchReport
from turnwise.trainers.mismatch.telling import reported
from turnwise.trainers.mismatch.weighed import Weighed, weigh

EXACT, MOSTLY = 0.35, 0.7
"""Shares of the differences that an explanation leaves where it is all of them, and the larger part of them."""
PART, APART = 0.8, 0.1
"""The share that a fit to half of the rows may leave of the others where fits of another kind leave so much more."""
FEWEST = 3
"""Tokens on which a share has to be seen."""
FAINT, FAINT_TOKENS = 0.25, 80
"""The share that an explanation may leave where the log is within rounding, and on how many tokens that has to be seen."""
LAST_NUMBERS = 2
"""Up to this cost detectors explain log-probabilities and cost little."""
CERTAIN = 500.0
"""Evidence of ids, which no difference of log-probabilities outweighs, unless something explains it wholly."""


@functools.cache
def detectors() -> Sequence[tuple[int, str, Detector]]:
    """All detectors, the cheapest first."""
    found: list[tuple[int, str, Detector]] = []
    for entry in pkgutil.iter_modules(faults.__path__):
        module = importlib.import_module(f"{faults.__name__}.{entry.name}")
        detector = getattr(module, entry.name, None)
        if detector is not None and hasattr(detector, COST):
            found.append((getattr(detector, COST), entry.name, detector))
    return sorted(found, key=lambda one: one[:2])


def decide(case: MismatchCase, notes: Sequence[str] = ()) -> MismatchReport:
    """Name the fault."""
    tried: list[Weighed] = []
    level = -1
    for cost, _, detector in detectors():
        if cost != level and _named(case, tried, cost) is not None:
            break
        level = cost
        if getattr(detector, NUMBERS) and not case.felt and _same(case):
            continue
        tried.extend(weigh(case, one) for one in detector(case))
    chosen = _named(case, tried, math.inf) or (_likeliest(tried) if case.felt else None)
    return reported(case, chosen, tried, notes)


def _named(case: MismatchCase, tried: Sequence[Weighed], cost: float) -> Weighed | None:
    """The explanation that leaves nothing to explain, if there is one, before detectors of this cost are asked."""
    by_numbers = min((one for one in tried if one.tokens >= FEWEST), key=lambda one: one.left, default=None)
    if by_numbers is not None and (_exact if case.felt else _faint)(case, by_numbers):
        return by_numbers
    if cost <= LAST_NUMBERS and not _same(case):
        return None  # the choice of tokens tells nothing as long as their log-probabilities may be of another model
    enough = CERTAIN if case.felt else ENOUGH
    by_evidence = max(tried, key=lambda one: one.explanation.evidence, default=None)
    return by_evidence if by_evidence is not None and by_evidence.explanation.evidence >= enough else None


def _same(case: MismatchCase) -> bool:
    """The log is the model's to the digits that were printed, so that nothing has to be explained."""
    return float(np.abs(case.gap_N / case.unit_N)[case.known_N].mean()) <= 10 * FLOAT32


def _exact(case: MismatchCase, one: Weighed) -> bool:
    if one.left <= NOTHING:
        return True
    within = one.left <= 0.1 or one.rest <= MEAN * case.noise.mean + FLOAT32
    return one.tokens >= FEW and one.left <= EXACT and within


def _faint(case: MismatchCase, one: Weighed) -> bool:
    return not _same(case) and one.tokens >= FAINT_TOKENS and one.left <= FAINT


def _likeliest(tried: Sequence[Weighed]) -> Weighed | None:
    """The explanation of the larger part of the differences; else a fit that tells weights from what was read; None: their form is told."""
    by_numbers = sorted((one for one in tried if one.tokens >= FEWEST), key=lambda one: one.left)
    if by_numbers and by_numbers[0].left <= MOSTLY:
        return by_numbers[0]
    fits = [one for one in by_numbers if "fitted" in one.explanation.data]
    if not fits or fits[0].left > PART:
        return None
    others = [one.left for one in fits if one.explanation.fault != fits[0].explanation.fault]
    return fits[0] if others and min(others) >= fits[0].left + APART else None
