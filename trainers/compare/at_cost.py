"""Runs on dev at equal cost: after as many updates, steps of environments, tokens read and sampled, and
where a campaign knows them, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.agents.evaluation.comparison import (
    SuccessDifference,
    difference_over_seeds,
    unpaired_difference,
)
from turnwise.agents.evaluation.statistics import Estimate, Interval, share_mean
from turnwise.trainers.compare.alike import curves_otherwise
from turnwise.trainers.compare.candidates import COSTS, Candidate, Contender, LearningCurve, Validation


class CostStanding(NamedTuple):
    """A contender's last validation within the budget; a group's mean over its runs."""

    label: str
    success: Estimate | None  # None: not validated within the budget
    difference: SuccessDifference | None = None  # against the base


@dataclass(frozen=True)
class CostComparison:
    """All contenders that have learning curves, when each had spent the same."""

    unit: str  # "updates", "steps", "tokens" or "seconds"
    budget: float  # what the cheapest run of all had spent at its last validation
    standings: tuple[CostStanding, ...]


def compare_costs(
    contenders: Sequence[Contender], notes: list[str]
) -> tuple[list[CostComparison], list[str]]:
    """The comparisons at equal updates, steps, tokens and seconds, and what is unlike between the curves."""
    sides = [side for side in contenders if all(member.curve for member in side.members)]
    if len(sides) < 2 or sides[0] is not contenders[0]:
        return [], []
    unlike = curves_otherwise([(side.label, member) for side in sides for member in side.members])
    found: list[CostComparison] = []
    for unit in COSTS:
        ends = [member.curve[-1].cost(unit) for side in sides for member in side.members]
        spent = [end for end in ends if end is not None]
        if not spent and unit == "seconds":
            continue
        if len(spent) < len(ends):
            notes.append(
                f"{len(ends) - len(spent)} runs did not count their {unit}, so they are not compared by them"
            )
            continue
        found.append(_at(unit, min(spent), sides))
    return found, unlike


def within(curve: LearningCurve, unit: str, budget: float) -> Validation | None:
    """The last validation that had cost no more than this."""
    paid = [v for v in curve if (cost := v.cost(unit)) is not None and cost <= budget]
    return paid[-1] if paid else None


def _at(unit: str, budget: float, sides: Sequence[Contender]) -> CostComparison:
    base, *others = [(side, _within(side, unit, budget)) for side in sides]
    standings = [CostStanding(base[0].label, _estimate(*base))]
    for other in others:
        standings.append(CostStanding(other[0].label, _estimate(*other), _difference(*base, *other)))
    return CostComparison(unit, budget, tuple(standings))


def _within(side: Contender, unit: str, budget: float) -> list[Validation]:
    """Of each member; empty where one was not validated in time."""
    found = [within(member.curve, unit, budget) for member in side.members]
    return [validation for validation in found if validation is not None] if all(found) else []


def _estimate(side: Contender, found: Sequence[Validation]) -> Estimate | None:
    if not found:
        return None
    if len(found) == 1:
        return _of_one(side.members[0], found[0])
    return share_mean([validation.success for validation in found])


def _of_one(run: Candidate, validation: Validation) -> Estimate:
    interval = validation.interval or Interval(float("-inf"), float("inf"))
    return Estimate(validation.success, interval, run.dev_tasks, run.dev_tasks)


def _difference(
    base: Contender, known: Sequence[Validation], other: Contender, its: Sequence[Validation]
) -> SuccessDifference | None:
    a, b = _estimate(base, known), _estimate(other, its)
    if a is None or b is None:
        return None
    if len(known) > 1 and len(its) > 1:
        sides = ((base, known), (other, its))
        return difference_over_seeds(*(side.by_seed([v.success for v in found]) for side, found in sides))
    return unpaired_difference(a, b)
