"""Success as a logistic function of how much is given away: fitted to a few points, and solved for a wanted success."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

FLATTEST, STEEPEST = 0.1, 50.0
MOST_STEPS = 80
"""Of a fit."""


class Response(NamedTuple):
    """Success f(p) = b + (1 − b)/(1 + exp(−k·(p + μ))) where the share p is given.

    The book's numbers:

    >>> curve = Response(0.1, 8.0, -0.6)
    >>> round(curve.at(0.3), 4), round(curve.at(0.6), 4), round(curve.reaches(0.5), 4)
    (0.1749, 0.55, 0.5721)
    >>> Response(0.5, 8.0, -0.6).reaches(0.5)  # it is as likely without help
    0.0
    """

    b: float
    k: float
    mu: float

    def at(self, p: float) -> float:
        """Return the success at a share."""
        return self.b + (1 - self.b) / (1 + exp(-max(-500.0, min(500.0, self.k * (p + self.mu)))))

    def reaches(self, wanted: float) -> float:
        """Return the share at which it is ``wanted``, within 0 and 1; 0 where it never is less."""
        if self.b >= wanted:
            return 0.0
        return min(1.0, max(0.0, -self.mu - log((1 - self.b) / (wanted - self.b) - 1) / self.k))


Points = Sequence[tuple[float, float]]
"""(share, mean success)."""


def fitted(points: Points, guesses: Sequence[float], slope: float = 8.0) -> Response:
    """The curve of the least squares, whose b is one of ``guesses``, the first of those that are equally good.

    A single point says nothing of the slope: k is ``slope`` then. k is within 0.1 and 50, and −μ is within −1 and 2.

    The book's three points with b = 0:

    >>> b, k, mu = fitted([(0.9, 1.0), (0.55, 0.375), (0.7, 0.75)], [0.0])
    >>> round(k, 4), round(mu, 4), round(Response(b, k, mu).reaches(0.5), 4)
    (11.3282, -0.5972, 0.5972)
    """
    curves = [_fit(points, b, slope) for b in guesses]
    return min(curves, key=lambda one: round(error(points, one), 9))


def error(points: Points, curve: Response) -> float:
    """The sum of squares."""
    return sum((curve.at(p) - a) ** 2 for p, a in points)


def _fit(points: Points, b: float, slope: float) -> Response:
    """The best of a grid of slopes and middles, and of what is around it, ever nearer where nothing is better."""
    known = len({p for p, _ in points}) > 1
    slopes = [2.0, 4.0, 8.0, 16.0, 32.0, STEEPEST] if known else [slope]
    best = _best(points, [Response(b, k, -m / 10) for k in slopes for m in range(-10, 21)])
    zoom = 0
    for _ in range(MOST_STEPS):
        by, to = 2 ** (0.5**zoom), 0.1 * 0.5**zoom
        near = [
            Response(b, min(STEEPEST, max(FLATTEST, best.k * times)), min(1.0, max(-2.0, best.mu + more)))
            for times in ((1 / by, 1.0, by) if known else (1.0,))
            for more in (-to, 0.0, to)
        ]
        after = _best(points, [best, *near])
        zoom, best = zoom + (after == best), after
        if zoom > 24:
            break
    return best


def _best(points: Points, curves: Sequence[Response]) -> Response:
    """The one of the least squares; of those that are equal but for rounding the first."""
    return min(curves, key=lambda one: round(error(points, one), 15))
