"""A straight line from the recipe's number to another one."""

from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment
from turnwise.trainers.kit.bounds import not_below_zero


@component("schedule", "linear")
def linear(now: ScheduleMoment, *, to: float = 0.0, over: int = 0, after: int = 0) -> float:
    """first + (to − first)·min(1, (update − after) / over), ``first`` until update ``after``; ``over`` 0: the rest of the run.

    >>> [linear(ScheduleMoment(update, 10, first=1.0, last=1.0), to=0.0, over=4) for update in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]

    Raises:
        RecipeError: a number of updates is below 0.
    """
    not_below_zero("schedule 'linear'", over=over, after=after)
    return now.first + (to - now.first) * share_of(now, over, after)


def share_of(now: ScheduleMoment, over: int, after: int) -> float:
    """Return the share of the way that is behind, from 0 to 1; the last update of the run is the end of the way where ``over`` is 0."""
    length = over or now.updates - 1 - after
    return min(1.0, max(0.0, (now.update - after) / length)) if length > 0 else float(now.update >= after)
