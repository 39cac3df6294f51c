"""Half a cosine from the recipe's number to another one."""

import math

from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.schedule.linear import share_of


@component("schedule", "cosine", paper="1608.03983")
def cosine(
    now: ScheduleMoment,
    *,
    to: float = 0.0,
    over: int = 0,
    after: int = 0,
    restarts: bool = False,
    ramp: int = 0,
) -> float:
    """to + (first − to)·(1 + cos πx)/2 with x = min(1, (update − after) / over); ``over`` 0: the rest of the run.

    In the first ``ramp`` updates this is multiplied by update/ramp: CHORD's μ, which grows to its peak and falls to its valley, is ``ramp`` and
    ``after`` of W, ``over`` of D. Loshchilov and Hutter 2016, eq. 5. With ``restarts`` x is 0 again after every ``over`` updates, where these are given, and as many each time
    (their T_mult of 1), as for CANON's μ.

    >>> [round(cosine(ScheduleMoment(update, 9, first=1.0, last=1.0), to=0.0, over=4), 6) for update in (0, 1, 2, 4, 8)]
    [1.0, 0.853553, 0.5, 0.0, 0.0]
    >>> again = [cosine(ScheduleMoment(n, 9, first=0.0, last=0.0), to=1.0, over=4, restarts=True) for n in range(6)]
    >>> [round(x, 4) for x in again]
    [0.0, 0.1464, 0.5, 0.8536, 0.0, 0.1464]

    CHORD's numbers, worked by hand: W = 10, peak 0.9, D = 100, valley 0.05.

    >>> moments = [ScheduleMoment(n, 200, first=0.9, last=0.9) for n in (0, 5, 10, 60, 85, 110)]
    >>> [round(cosine(now, to=0.05, over=100, after=10, ramp=10), 4) for now in moments]
    [0.0, 0.45, 0.9, 0.475, 0.1745, 0.05]

    Raises:
        RecipeError: a number of updates is below 0.
    """
    not_below_zero("schedule 'cosine'", over=over, after=after, ramp=ramp)
    x = max(0, now.update - after) % over / over if restarts and over else share_of(now, over, after)
    risen = min(1.0, now.update / ramp) if ramp else 1.0
    return risen * (to + (now.first - to) * (1 + math.cos(math.pi * x)) / 2)
