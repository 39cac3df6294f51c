"""The power of cost by which a run's loss falls, and how well it foretells what it was not shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from turnwise.agents.evaluation.distributions import t_quantile
from turnwise.agents.evaluation.statistics import Interval
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, AuditTable, Cell, audit, count
from turnwise.trainers.audit.running import AuditedRuns, parameters_of
from turnwise.trainers.compare.candidates import COSTS
from turnwise.trainers.compare.sources import RunRecords

REPEATS = 25
"""Visits of a task up to which repeating it is harmless by the paper."""


class PowerFit(NamedTuple):
    """log L = −slope · log X + offset."""

    slope: float
    offset: float
    interval: Interval | None
    r2: float

    def loss(self, x: float) -> float:
        """L at X.

        >>> fit = PowerFit(0.07, -0.1, None, 1.0)
        >>> round(fit.loss(1000), 4), round(2 ** -fit.slope, 4), round(0.9 ** (-1 / fit.slope), 4)
        (0.5579, 0.9526, 4.5048)
        """
        return math.exp(self.offset - self.slope * math.log(x))

    def needed(self, loss: float) -> float | None:
        """X at which the loss is this; None where it never falls."""
        return math.exp((self.offset - math.log(loss)) / self.slope) if self.slope > 0 else None


@audit(21, paper="2509.25300")
def power_law(
    played: AuditedRuns,
    *,
    cost: str = "updates",
    ceiling: float = 1.0,
    held: float = 0.25,
    target: float = 0.95,
) -> AuditFinding:
    """Fit log L = −k·log X + E of the validations' loss L = 1 − success/ceiling over cost X, judged on the held-out last ones.

    Least squares over (log X, log L) of the first validations; the last ``held`` of them are foretold, and the mean distance of log L
    and of success is the held-out error. k has Student's interval. With runs of models of two sizes or more, k(N) = K/(1 + N₀/N) is
    fitted to their slopes. A task that was visited more than 25 times is warned of: by the paper repeats are harmless until about there.
    Validations at X = 0 or without loss are left out and counted.

    >>> sizes = (1.5e9, 7e9, 32e9)
    >>> [round(capacity(n, 0.12, 5e9), 4) for n in sizes]
    [0.0277, 0.07, 0.1038]
    >>> [round(PowerFit(capacity(n, 0.12, 5e9), -0.1, None, 1).loss(1000), 4) for n in sizes]
    [0.7473, 0.5579, 0.4418]
    >>> top, half = fit_capacity(sizes, [capacity(n, 0.12, 5e9) for n in sizes])
    >>> round(top, 6), round(half / 1e9, 6)
    (0.12, 5.0)

    Args:
        cost: X: updates, steps or tokens.
        ceiling: the success of a perfect policy, R_max.
        held: the share of the last validations that is foretold.
        target: the success whose cost is foretold.
    """
    _check_options(cost, ceiling, held, target)
    figures: list[AuditFigure] = []
    curves: list[AuditCurve] = []
    rows: list[Sequence[Cell]] = []
    said: list[str] = []
    slopes: list[tuple[int, float]] = []
    for run in played.runs:
        points, left = _points(run, cost, ceiling)
        known = len(points) - max(1, round(held * len(points)))
        if known < 3:
            raise TurnwiseError(
                f"{run.path} has {len(points)} validations with a cost and a loss, and a fit with a held-out part needs 4.",
                "Validate more often: `evaluate: {every: …}` in the recipe.",
            )
        name = run.path.name
        fit = fit_power(points[:known])
        figures += [
            AuditFigure(
                f"slope of {name}",
                fit.slope,
                fit.interval,
                about="k: doubling the cost multiplies the loss by 2^−k",
            ),
            AuditFigure(f"R² of {name}", fit.r2, about=f"of the {known} fitted validations"),
            *_held_out(name, fit, points[known:], ceiling),
        ]
        needed = fit.needed(1 - target / ceiling)
        figures.append(
            AuditFigure(
                f"{cost} to {target:.0%} of {name}", needed, None, "count", "foretold, if the law holds"
            )
        )
        curves += [
            AuditCurve(name, [x for x, _ in points], [ceiling * (1 - loss) for _, loss in points]),
            AuditCurve(
                f"{name}, fitted", [x for x, _ in points], [ceiling * (1 - fit.loss(x)) for x, _ in points]
            ),
        ]
        rows += [
            (
                name,
                x,
                ceiling * (1 - loss),
                ceiling * (1 - fit.loss(x)),
                "fitted" if i < known else "foretold",
            )
            for i, (x, loss) in enumerate(points)
        ]
        said += _warnings(run, name, left)
        if (size := parameters_of(run)) is not None:
            slopes.append((size, fit.slope))
    figures += _over_sizes(slopes)
    return AuditFinding(
        figures,
        [AuditTable("validations", ("", cost, "success", "by the law", ""), rows)],
        curves,
        (cost, "success"),
        said,
    )


def fit_power(points: Sequence[tuple[float, float]]) -> PowerFit:
    """Least squares of log L over log X, with Student's 95 % interval of the slope where there are three points or more.

    >>> fit = fit_power([(x, 2 * x**-0.5) for x in (1, 10, 100, 1000)])
    >>> round(fit.slope, 6), round(fit.r2, 6)
    (0.5, 1.0)
    """
    x, y = np.log([x for x, _ in points]), np.log([loss for _, loss in points])
    sxx = float(((x - x.mean()) ** 2).sum())
    if sxx <= 0:
        raise TurnwiseError(
            "All validations had the same cost, so that no slope can be fitted.",
            "Validate at several updates.",
        )
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / sxx
    offset = float(y.mean() - slope * x.mean())
    rest, total = float(((y - offset - slope * x) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    interval = None
    if len(points) > 2:
        half = t_quantile(0.975, len(points) - 2) * math.sqrt(rest / (len(points) - 2) / sxx)
        interval = Interval(-slope - half, -slope + half)
    return PowerFit(-slope, offset, interval, 1 - rest / total if total > 0 else 1.0)


def capacity(size: float, top: float, half: float) -> float:
    """k(N) = K/(1 + N₀/N)."""
    return top / (1 + half / size)


def fit_capacity(sizes: Sequence[float], slopes: Sequence[float]) -> tuple[float, float]:
    """K and N₀ by least squares on the slopes: for each N₀ the best K has a closed form; N₀ by golden section over its logarithm."""
    n, k = np.asarray(sizes, dtype=np.float64), np.asarray(slopes, dtype=np.float64)

    def best(log_half: float) -> tuple[float, float]:
        g = 1 / (1 + math.exp(log_half) / n)
        top = float(g @ k) / float(g @ g)
        return float(((k - top * g) ** 2).sum()), top

    low, high = math.log(float(n.min())) - 12, math.log(float(n.max())) + 12
    grid = np.linspace(low, high, 400)
    nearest = int(np.argmin([best(float(x))[0] for x in grid]))
    low, high = float(grid[max(0, nearest - 1)]), float(grid[min(399, nearest + 1)])
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if best(a)[0] < best(b)[0] else (a, high)
    middle = (low + high) / 2
    return best(middle)[1], math.exp(middle)


def _points(run: RunRecords, cost: str, ceiling: float) -> tuple[list[tuple[float, float]], int]:
    """Cost and loss of the validations that have both, and how many have not."""
    known = [(v.cost(cost), 1 - v.success / ceiling) for v in run.curve]
    if known and all(x is None for x, _ in known):
        raise TurnwiseError(
            f"{run.path} did not count its {cost}.", "`--set cost=updates`, or train with this version."
        )
    kept = [(float(x), loss) for x, loss in known if x and loss > 0]
    return kept, len(known) - len(kept)


def _held_out(
    name: str, fit: PowerFit, held: Sequence[tuple[float, float]], ceiling: float
) -> list[AuditFigure]:
    logs = [abs(math.log(fit.loss(x)) - math.log(loss)) for x, loss in held]
    off = [ceiling * abs(fit.loss(x) - loss) for x, loss in held]
    return [
        AuditFigure(
            f"held-out error of {name}", sum(logs) / len(logs), about=f"of log L, {len(held)} validations"
        ),
        AuditFigure(f"held-out error of success of {name}", sum(off) / len(off), None, "share"),
    ]


def _warnings(run: RunRecords, name: str, left: int) -> list[str]:
    rows = [row.values for row in run.metrics if row.phase == "rl" and "tasks_new" in row.values]
    new, again = sum(row["tasks_new"] for row in rows), sum(row.get("tasks_returned", 0.0) for row in rows)
    said = [f"{name}: {left} validations without cost or loss are left out"] if left else []
    if new and (new + again) / new > REPEATS:
        said.append(
            f"{name} played each task {(new + again) / new:.0f} times; above {REPEATS} repeats begin to overfit"
        )
    return said


def _over_sizes(slopes: Sequence[tuple[int, float]]) -> list[AuditFigure]:
    if len({size for size, _ in slopes}) < 2:
        return []
    top, half = fit_capacity([float(size) for size, _ in slopes], [slope for _, slope in slopes])
    return [
        AuditFigure("K of k(N)", top, about="the slope of an endless model"),
        count("N₀ of k(N)", half, "weights at which k is half of K"),
    ]


def _check_options(cost: str, ceiling: float, held: float, target: float) -> None:
    if cost not in COSTS[:3]:
        raise NotFoundError("cost", cost, COSTS[:3])
    if not (0 < ceiling <= 1 and 0 < held < 1 and 0 < target < ceiling):
        raise TurnwiseError(
            f"ceiling {ceiling:g}, held {held:g} and target {target:g} do not fit.",
            "Take 0 < target < ceiling ≤ 1 and 0 < held < 1.",
        )
