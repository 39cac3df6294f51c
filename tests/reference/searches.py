"""The formulas of searches once more, from the formula book and in another form of computation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def puct(q: float, prior: float, above: int, n: int, c: float) -> float:
    """AlphaMath (99): Q + c·prior·√N_parent/(1 + N)."""
    return math.fsum([q, c * prior * above**0.5 * (1.0 / (n + 1.0))])


def prior(logps: Sequence[float]) -> float:
    """AlphaMath (99): the geometric mean of the tokens' probabilities."""
    return math.prod(math.exp(x) for x in logps) ** (1.0 / len(logps))


def uct(v: float, above: int, n: int, c: float) -> float:
    """ReST-RL (260): V + c·√((1 + ln N_parent)/(0.1 + N)), by logarithms."""
    return v + c * math.exp(0.5 * (math.log1p(math.log(above)) - math.log(n + 0.1)))


def ucb(v: float, above: int, n: int, c: float) -> float:
    """PROPA (54): V/n + c·√(2 ln N_p/n), ∞ where n = 0."""
    if n == 0:
        return float("inf")
    return v + c * (math.log(above**2) / n) ** 0.5


def best_of(q: float, k: int) -> float:
    """PAV (53): the chance that one of k tries succeeds, by what the i-th adds."""
    p = Fraction(q).limit_denominator(10**12)
    return float(sum(p * (1 - p) ** i for i in range(k)))


def progress(values: Sequence[float], k: int, alpha: float) -> list[float]:
    """PAV (53): effective scores of the states after turns; the first value is that before them."""
    mu = [best_of(v, k) for v in values]
    return [values[i] + alpha * mu[i] - alpha * mu[i - 1] for i in range(1, len(values))]


def priority(logprob: float, length: int, alpha: float) -> float:
    """BFS-Prover (55): Σ log p / L^α, by logarithms."""
    return -math.exp(math.log(-logprob) - alpha * math.log(length))


def weights(scores: Sequence[float]) -> list[float]:
    """Bag of tricks (152): min-max over the candidates; all equal → 1."""
    if len(set(scores)) == 1:
        return [1.0 for _ in scores]
    order = sorted(scores)
    width = order[-1] - order[0]
    return [1.0 - (order[-1] - s) / width for s in scores]


def voted(answers: Sequence[str], scores: Sequence[float]) -> int:
    """Bag of tricks (152): the place of the best-scored candidate with the answer whose weights sum to the most."""
    w = weights(scores)
    sums = {a: math.fsum(x for b, x in zip(answers, w, strict=True) if a == b) for a in answers}
    top = max(sums.values())
    winner = next(a for a in answers if abs(sums[a] - top) < 1e-12)
    places = [i for i, a in enumerate(answers) if a == winner]
    return min(places, key=lambda i: (-scores[i], i))


def least_turns(rho: float, length: int) -> int:
    """Early rejection (39): the first τ with √(τ/L) ≥ ρ."""
    return next(t for t in range(1, length + 1) if (t / length) ** 0.5 >= rho - 1e-9)


def risk(tries: int, lead: float, noise: float) -> float:
    """Early rejection (39): (N − 1)·exp(−Δ²/4σ²), one by one of those that may come first."""
    return math.fsum(math.exp(-0.25 * (lead / noise) ** 2) for _ in range(1, tries))


def allowed(rewards: Sequence[float], mask: Sequence[int], budget: int) -> list[int]:
    """Saffron (182): the best of what is not masked, one after the other."""
    found: list[int] = []
    while len(found) < min(budget, sum(mask)):
        rest = [(r, -i) for i, r in enumerate(rewards) if mask[i] and i not in found]
        found.append(-max(rest)[1])
    return found


def worst_turn(values: Sequence[float]) -> int:
    """Search-R2 (217), ours: the turn with the largest fall, the earliest."""
    falls = [(values[k] - values[k + 1], -k) for k in range(len(values) - 1)]
    return -max(falls)[1]


def bad_turn(values: Sequence[float], drop: float) -> int | None:
    """GM-PRM (108), ours: the first turn with a fall of more than ``drop``."""
    for k in range(1, len(values)):
        if values[k] < values[k - 1] - drop:
            return k - 1
    return None
