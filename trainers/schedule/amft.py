"""A weight that grows while a metric is below where it should be, step by step."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment
from turnwise.trainers.schedule.towards import measured


@component("schedule", "amft", paper="2508.06944")
def amft(
    now: ScheduleMoment,
    *,
    metric: str = "entropy",
    target: float = 0.5,
    gain: float = 5e-4,
    low: float = 0.05,
    high: float = 0.95,
) -> float:
    """clip(last + gain·(target − metric), low, high): how much imitation counts beside reinforcement.

    The entropy controller alone of AMFT (He et al. 2025) for μ in (1 − μ)·L_RL + μ·L_SFT: as entropy falls below ``target``, the
    policy's after its warm start, demonstrations count for more. Give μ to a source's weight, such as
    ``source.demonstrations.weight``, and 1 − μ, the same with a negative gain, to that of the losses of what is played. Left
    out: the meta-gradient of the paper's title, of a validation loss in μ, whose published step of 1e-4 times the learning rate is
    without effect; and ``target`` is typed in, where the paper measures it after the warm start.

    >>> def after(measured):
    ...     return amft(ScheduleMoment(1, 9, first=0.8, last=0.8, metrics={"entropy": measured}), target=0.6)
    >>> [round(after(measured), 6) for measured in (0.6, 0.4, 0.8)]
    [0.8, 0.8001, 0.7999]

    Raises:
        RecipeError: no update of the first ten had such a metric, or ``low`` is above ``high``.
    """
    if low > high:
        raise RecipeError(f"schedule 'amft': nothing is between {low} and {high}.", "Give low below high.")
    found = measured(now, "amft", metric)
    return now.last if found is None else min(high, max(low, now.last + gain * (target - found)))
