"""Tasks whose next episodes are expected to tell most of their success."""

from __future__ import annotations

from math import comb, exp, lgamma

import torch

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup
from turnwise.trainers.sampler.remembered import FromPool, require_option


def _digamma(x: float) -> float:
    return float(torch.digamma(torch.tensor(x, dtype=torch.float64)))


def log_beta(a: float, b: float) -> float:
    """ln B(a, b)."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def entropy(a: float, b: float) -> float:
    """H of Beta(a, b): ln B(a, b) − (a − 1)ψ(a) − (b − 1)ψ(b) + (a + b − 2)ψ(a + b).

    >>> round(entropy(1, 1), 4), round(entropy(2, 4), 4)
    (0.0, -0.3624)
    """
    return log_beta(a, b) - (a - 1) * _digamma(a) - (b - 1) * _digamma(b) + (a + b - 2) * _digamma(a + b)


def information(a: float, b: float, episodes: int) -> float:
    """I: the entropy that ``episodes`` more are expected to take from Beta(a, b).

    >>> [round(information(a, b, 8), 4) for a, b in ((1, 1), (2, 4), (4, 2), (1, 9), (20, 40))]
    [0.7664, 0.4155, 0.4155, 0.2634, 0.0625]
    """
    after = sum(
        comb(episodes, s)
        * exp(log_beta(a + s, b + episodes - s) - log_beta(a, b))
        * entropy(a + s, b + episodes - s)
        for s in range(episodes + 1)
    )
    return max(0.0, entropy(a, b) - after)


def difficulty(a: float, b: float, eta: float = 3.0, mu: float = 0.3) -> float:
    """w = φ̄(1 − φ̄)·exp(−η(φ̄ − μ)²), φ̄ = a/(a + b).

    >>> [round(difficulty(a, b), 4) for a, b in ((1, 1), (2, 4), (4, 2), (1, 9))]
    [0.2217, 0.2215, 0.1485, 0.0798]
    """
    mean = a / (a + b)
    return mean * (1 - mean) * exp(-eta * (mean - mu) ** 2)


@component("sampler", "insight", paper="2603.01907")
class InSight(FromPool):
    """The tasks of a pool whose next group is expected to tell most, weighed by difficulty: the largest w·I of random candidates.

    InSight (2026): the success of a task is Beta(α, β), (1, 1) at first; after K episodes with S successes α ← λα + (1 − λ) + S, β
    likewise. I is the entropy that group_size more episodes are expected to take, w = φ̄(1 − φ̄)·exp(−η(φ̄ − μ)²). Of ``candidates``
    times as many tasks as are played, drawn from the pool, those of the largest w·I are. The paper's table prints μ = 3, which is no rate.

    Worked by hand from the book, for groups of 8:

    >>> [round(difficulty(a, b) * information(a, b, 8), 4) for a, b in ((1, 1), (2, 4), (4, 2), (1, 9), (20, 40))]
    [0.1699, 0.092, 0.0617, 0.021, 0.0138]
    """

    over = "the tasks of its pool of which most is to be learned: uncertain ones, solved in about three of ten episodes"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        size: int = 512,
        candidates: int = 16,
        eta: float = 3.0,
        mu: float = 0.3,
        keep: float = 1.0,
    ) -> None:
        super().__init__(setup, size)
        require_option(
            "insight", candidates > 1, f"candidates={candidates} leaves no choice", "Give 2 or more."
        )
        require_option("insight", eta >= 0, f"eta {eta:g} seeks what is far from μ", "Give 0 or more.")
        require_option("insight", 0 <= mu <= 1, f"mu {mu:g} is no success", "Give one from 0 to 1.")
        require_option("insight", 0 < keep <= 1, f"keep {keep:g} is no share", "Give one above 0, up to 1.")
        self.candidates, self.eta, self.mu, self.keep = candidates, eta, mu, keep

    def score(self, index: int) -> float:
        """w·I of a task."""
        known = self.known(index)
        a, b = 1 + known.successes, 1 + known.episodes - known.successes
        return difficulty(a, b, self.eta, self.mu) * information(a, b, self.setup.group_size)

    def chosen(self, update: int) -> list[GroupRequest]:
        rng = derive_rng("insight", self.setup.seed, update)
        drawn = rng.sample(range(self.size), min(self.size, self.candidates * self.setup.most))
        best = sorted(drawn, key=self._scores(drawn).__getitem__, reverse=True)[: self.setup.most]
        rng.shuffle(best)
        return [self.request(index) for index in best]

    def _scores(self, drawn: list[int]) -> dict[int, float]:
        """Scores, computed once for equal memories."""
        found: dict[tuple[float, float], float] = {}
        scores: dict[int, float] = {}
        for index in drawn:
            known = self.known(index)
            key = known.episodes, known.successes
            if key not in found:
                found[key] = self.score(index)
            scores[index] = found[key]
        return scores
