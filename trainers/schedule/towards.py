"""A controller: a number grows or shrinks until a metric is where it should be."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment
from turnwise.trainers.kit.bounds import not_below_zero

PATIENCE = 10
"""Updates after which a metric that none of them had is taken for a mistake."""


@component("schedule", "towards", paper="1909.08593")
def towards(
    now: ScheduleMoment,
    *,
    metric: str = "kl_reference",
    target: float = 0.1,
    gain: float = 0.1,
    limit: float = 0.2,
) -> float:
    """last·(1 + gain·clip(metric/target − 1, ±limit)): grows while the metric of the update before is above the target.

    The adaptive KL coefficient of Ziegler et al. 2019, §2.2 (gain 0.1, limit 0.2), for any number and metric; give a
    negative gain where the number raises the metric.

    >>> def after(measured):
    ...     return towards(ScheduleMoment(1, 9, first=1.0, last=2.0, metrics={"kl": measured}), metric="kl", target=0.1)
    >>> [round(after(measured), 6) for measured in (0.1, 0.11, 0.3, 0.0)]
    [2.0, 2.02, 2.04, 1.96]
    >>> towards(ScheduleMoment(0, 9, first=1.0, last=1.0), metric="kl", target=0.1)
    1.0

    Raises:
        RecipeError: no update of the first ten had such a metric, the target is 0, or the limit is below it.
    """
    not_below_zero("schedule 'towards'", limit=limit)
    if not target:
        raise RecipeError("schedule 'towards': nothing is a share of target 0.", "Give another target.")
    found = measured(now, "towards", metric)
    if found is None:
        return now.last
    return now.last * (1 + gain * min(limit, max(-limit, found / target - 1)))


def measured(now: ScheduleMoment, schedule: str, metric: str) -> float | None:
    """The metric; None in the first updates, which lack metrics of losses where they teach nothing.

    Raises:
        RecipeError: no update has had it so far, and that is taken for a mistake.
    """
    if metric not in now.metrics and now.update >= PATIENCE:
        known = ", ".join(sorted(now.metrics))
        raise RecipeError(f"schedule {schedule!r}: there is no metric {metric!r}.", f"There are: {known}.")
    return now.metrics.get(metric)
