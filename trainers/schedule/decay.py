"""Geometric decay, in steps or smoothly."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment


@component("schedule", "decay", paper="2508.08940")
def decay(
    now: ScheduleMoment, *, factor: float = 0.7, every: int = 100, low: float = 0.0, smooth: bool = False
) -> float:
    """The number is multiplied by ``factor`` after every so many updates, and stays at ``low`` or above.

    max(low, first·γ^⌊t/T⌋) for update t from 0; with ``smooth`` the exponent is t/T itself. Train Long, Think Short's budget of tokens
    (Hammoud et al. 2025); e^(−t/T) is the factor 0.36788 with ``smooth``.

    Worked by hand with their numbers, 256 tokens, γ = 0.7, T = 100, at updates 0, 100, 250 and 300:

    >>> moments = [ScheduleMoment(t, 400, 256.0, 0.0) for t in (0, 100, 250, 300)]
    >>> [round(decay(now), 3) for now in moments], round(decay(moments[2], smooth=True), 3)
    ([256.0, 179.2, 125.44, 87.808], 104.951)

    Raises:
        RecipeError: the factor or the period is not above 0.
    """
    if every < 1 or factor <= 0:
        raise RecipeError(
            f"schedule 'decay': factor={factor:g}, every={every} make no decay.",
            "Set factor above 0, and every to 1 or more.",
        )
    exponent = now.update / every if smooth else now.update // every
    return max(low, now.first * factor**exponent)
