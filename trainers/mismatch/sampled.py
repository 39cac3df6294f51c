"""Settings of sampling applied to a distribution: how many tokens they keep, and what a kept token's log-probability becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from turnwise.trainers.mismatch.core import PLAIN, DeclaredSampling, Floats, Ints, Truths
from turnwise.trainers.mismatch.scoring import Distributions

ALL = np.iinfo(np.int64).max
"""The number of kept tokens where nothing is cut off."""
_EDGE = 1e-6


def betas(declared_N: Sequence[DeclaredSampling]) -> Floats:
    """Inverse temperatures of settings; of greedy decoding 1, whose log-probabilities engines report as the model's own."""
    return np.array([1 / d.temperature if d.temperature > 0 else 1.0 for d in declared_N])


class Likeliest(NamedTuple):
    """Log-probabilities of the likeliest tokens, falling, and the probability of each with all that are likelier."""

    top_NK: Floats
    mass_NK: Floats

    @classmethod
    def of(cls, top_NK: Floats) -> Likeliest:
        return cls(top_NK, np.exp(top_NK).cumsum(-1))

    def kept(self, top_p: Floats, top_k: Ints, min_p: Floats) -> Ints:
        """Return how many of them settings keep at each place: top-k first, top-p of what it leaves, min-p.

        >>> top = Likeliest.of(np.log([[0.5, 0.3, 0.15, 0.05]]))
        >>> [int(top.kept(np.array([p]), np.array([k]), np.array([m]))[0]) for p, k, m in ((0.6, 0, 0), (1, 3, 0), (1, 0, 0.2), (0.8, 2, 0))]
        [2, 3, 3, 2]
        >>> int(top.kept(np.array([1.0]), np.array([0]), np.array([0.0]))[0]) == ALL
        True
        """
        n, width = self.top_NK.shape
        whole = np.full(n, ALL)
        kept_N = by_k = np.where((top_k > 0) & (top_k <= width), top_k, whole)
        if (top_p < 1).any():
            of_k = self.mass_NK[np.arange(n), np.minimum(by_k, width) - 1]
            limit = top_p * np.where(by_k < ALL, of_k, 1.0)
            by_p = (self.mass_NK < limit[:, None] - _EDGE).sum(-1) + 1
            kept_N = np.minimum(kept_N, np.where((top_p < 1) & (by_p <= width), by_p, whole))
        if (min_p > 0).any():
            with np.errstate(divide="ignore"):
                least_N1 = self.top_NK[:, :1] + np.log(min_p)[:, None] - _EDGE
            by_min = (self.top_NK >= least_N1).sum(-1)
            kept_N = np.minimum(kept_N, np.where((min_p > 0) & (by_min < width), by_min, whole))
        return kept_N

    def mass(self, kept_N: Ints) -> Floats:
        """Return the probability of those that are kept."""
        width = self.top_NK.shape[1]
        found = self.mass_NK[np.arange(len(kept_N)), np.clip(kept_N, 1, width) - 1]
        return np.where(kept_N > width, 1.0, np.minimum(found, 1.0))


def kept_as_declared(found: Distributions, declared_N: Sequence[DeclaredSampling]) -> Ints:
    """Return how many tokens the declared settings keep at each place."""
    if not any(d.top_p < 1 or d.top_k or d.min_p for d in declared_N):
        return np.full(len(found), ALL)
    top_p, top_k, min_p = (np.array([d[field] for d in declared_N]) for field in (1, 2, 3))
    return Likeliest.of(found.top(betas(declared_N))).kept(top_p, top_k.astype(np.int64), min_p)


def as_declared(found: Distributions, declared_N: Sequence[DeclaredSampling], raw_N: Truths) -> Floats:
    """Log-probabilities as an engine with these settings reports them: of the model's own distribution, or of the one that is sampled from."""
    if all(d == PLAIN for d in declared_N):
        return found.logp_N
    beta_N = betas(declared_N)
    kept_N = kept_as_declared(found, declared_N)
    processed = found.tempered(beta_N)
    if (kept_N < ALL).any():
        processed = processed - np.log(Likeliest.of(found.top(beta_N)).mass(kept_N))
    return np.where(raw_N, found.logp_N, processed)
