"""Imitation as far as the policy has strayed from what was demonstrated."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment
from turnwise.trainers.schedule.towards import measured


@component("schedule", "sasr", paper="2505.13026")
def sasr(
    now: ScheduleMoment,
    *,
    metric: str = "source/demonstrations/nll",
    usual: float = 1.0,
    gamma: float = 1.0,
    rest: bool = False,
) -> float:
    """first·p, p = m/(m + γ·usual): imitation counts for more, the further the metric m is above the ``usual`` one.

    SASR (Chen et al. 2025) draws in each step whether to imitate, with chance p, or to reinforce: m is the norm of
    imitation's gradient now, ``usual`` that of the warm start. By what others write of it; we could not read the formula
    itself. This is its rule on another quantity. Ours: both are done in each step, weighed by p and, with ``rest``, by 1 − p, which is what the draw is in the
    mean; m is the loss on demonstrations, for the norm of their gradient alone is not measured. A negative m counts as 0.

    >>> def after(measured, **options):
    ...     metrics = {"source/demonstrations/nll": measured}
    ...     return sasr(ScheduleMoment(1, 9, first=1.0, last=1.0, metrics=metrics), usual=2.0, **options)
    >>> [round(after(measured), 4) for measured in (3.0, 1.5, 0.5)], round(after(3.0, rest=True), 4)
    ([0.6, 0.4286, 0.2], 0.4)

    Raises:
        RecipeError: no update of the first ten had such a metric, or ``usual`` or ``gamma`` is not above 0.
    """
    if usual <= 0 or gamma <= 0:
        raise RecipeError(
            f"schedule 'sasr': usual={usual} and gamma={gamma} are no measure.", "Give both above 0."
        )
    found = measured(now, "sasr", metric)
    if found is None:
        return now.last
    strayed = max(0.0, found)
    share = strayed / (strayed + gamma * usual)
    return now.first * (1 - share if rest else share)
