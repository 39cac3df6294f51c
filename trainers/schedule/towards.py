"""A controller: a number grows or shrinks until a metric is where it should be."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment

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
        RecipeError: no update of the first ten had such a metric, or the target is 0.
    """
    if not target:
        raise RecipeError("schedule 'towards': nothing is a share of target 0.", "Give another target.")
    if (
        metric not in now.metrics and now.update < PATIENCE
    ):  # updates that teach nothing lack metrics of losses
        return now.last
    if metric not in now.metrics:
        known = ", ".join(sorted(now.metrics))
        raise RecipeError(f"schedule 'towards': there is no metric {metric!r}.", f"There are: {known}.")
    off = min(limit, max(-limit, now.metrics[metric] / target - 1))
    return now.last * (1 + gain * off)
