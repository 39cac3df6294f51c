"""The phases of entropy-regularised policy optimisation: strong at first, then fading."""

import math

from turnwise.registry import component
from turnwise.trainers.core import ScheduleMoment


@component("schedule", "epo", paper="2509.22576")
def epo(now: ScheduleMoment) -> float:
    """first·w: w = 1 − 0.2·(1 − e^(−2u/h)) in the first half of the run, 0.8·e^(−3(u − h)/(U − h)) in the second.

    u is the update, U the number of updates, h = U/2. EPO (Xu et al. 2025), whose w multiplies β, the weight of the penalty:
    `schedule: {loss.epo.beta: epo}`.

    Worked by hand with U = 150: w = 1 at 0, 1 − 0.2·(1 − e^(−74/75)) at 37, 0.8·e^(−1/25) at 76.

    >>> [round(epo(ScheduleMoment(u, 150, first=1.0, last=1.0)), 4) for u in (0, 37, 75, 76, 149)]
    [1.0, 0.8746, 0.8271, 0.7686, 0.0415]
    """
    half = now.updates / 2
    if now.update <= half:
        return now.first * (1 - 0.2 * (1 - math.exp(-2 * now.update / half)))
    return now.first * 0.8 * math.exp(-3 * (now.update - half) / half)
