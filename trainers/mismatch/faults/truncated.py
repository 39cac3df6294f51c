"""A top-p, top-k or min-p that is not declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.choices import averaged, begins, evidence, usable
from turnwise.trainers.mismatch.core import Explanation, Floats, Ints, Truths, detects
from turnwise.trainers.mismatch.sampled import ALL, Likeliest, betas, kept_as_declared

_P = (*np.arange(0.3, 0.9, 0.05), *np.arange(0.9, 0.999, 0.01))
_K = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 64, 100)
_MIN = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
_USUAL_P, _SELDOM = 0.695, 0.05
"""Engines are seldom told a top-p below 0.7, and those below weigh so much together: on a sharp policy a low top-p and a low temperature choose the
same tokens, and only how often each is set tells them apart."""


class CutOff(NamedTuple):
    """A way to cut tokens off."""

    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0

    def kept(self, top: Likeliest) -> Ints:
        """Count the likeliest tokens that are left, at each place."""
        n = len(top.top_NK)
        return top.kept(np.full(n, self.top_p), np.full(n, self.top_k), np.full(n, self.min_p))

    def __str__(self) -> str:
        named = {"top-p": self.top_p if self.top_p < 1 else 0, "top-k": self.top_k, "min-p": self.min_p}
        return (
            " and ".join(f"{name} {value:.3g}" for name, value in named.items() if value) or "nothing cut off"
        )


_TRIED = (
    *(CutOff(top_p=float(p)) for p in _P),
    *(CutOff(top_k=k) for k in _K),
    *(CutOff(min_p=m) for m in _MIN),
)
_LOW = sum(p < _USUAL_P for p in _P)
_SHARES_P = [_SELDOM / _LOW if p < _USUAL_P else (1 - _SELDOM) / (len(_P) - _LOW) for p in _P]


@detects(cost=0)
def truncated(case: MismatchCase) -> Iterator[Explanation]:
    """Fit what is cut off to the log-probabilities that are left, and weigh it by the tokens that were chosen."""
    yield from _of_numbers(case)
    yield from _of_choices(case)


def _of_numbers(case: MismatchCase) -> Iterator[Explanation]:
    index_M = np.flatnonzero(case.looked_N)
    if len(index_M) < 5:
        return
    found = case.found.at(index_M)
    beta_M = betas([case.declared_N[n] for n in index_M])
    top, whole_M = Likeliest.of(found.top(beta_M)), found.tempered(beta_M)
    logged_M, unit_M = case.logged_N[index_M], case.unit_N[index_M]

    def expected(cut: CutOff) -> Floats:
        return whole_M - np.log(top.mass(cut.kept(top)))

    def miss(cut: CutOff) -> float:
        return float(np.minimum(np.abs(logged_M - expected(cut)) / unit_M, 5.0).mean())

    best = _refined(min((*_TRIED, CutOff()), key=miss), miss)
    expected_N = np.full(len(case.row_N), np.nan)
    expected_N[index_M] = expected(best)
    yield Explanation(
        "truncated_sampling",
        f"{best}, and log-probabilities of what was left",
        expected_N,
        data=best._asdict(),
    )


def _refined(best: CutOff, miss: Callable[[CutOff], float]) -> CutOff:
    """Search around the best of the grid."""
    if best.top_p < 1:
        near = [
            best._replace(top_p=float(p))
            for p in np.arange(best.top_p - 0.05, min(best.top_p + 0.05, 0.9999), 0.0025)
            if p > 0
        ]
    elif best.top_k:
        near = [
            best._replace(top_k=k) for k in range(max(1, int(best.top_k * 0.7)), int(best.top_k * 1.4) + 2)
        ]
    elif best.min_p:
        near = [best._replace(min_p=float(best.min_p * x)) for x in np.geomspace(0.6, 1.6, 41)]
    else:
        near = []
    return min([best, *near], key=miss)


def _of_choices(case: MismatchCase) -> Iterator[Explanation]:
    usable_N = usable(case)
    if not usable_N.any():
        return
    top = Likeliest.of(case.found.top(betas(case.declared_N)))
    declared_N = kept_as_declared(case.found, case.declared_N)
    believed_N = np.log(top.mass(declared_N))
    rank_N = case.found.rank_N
    tried = []
    for cut in _TRIED:
        kept_N = np.minimum(cut.kept(top), declared_N)
        ratio_N = np.where(rank_N < kept_N, believed_N - np.log(top.mass(kept_N)), -np.inf)
        tried.append((cut, evidence(case, ratio_N, usable_N)))
    best, found = max(tried, key=lambda pair: pair[1].nats)
    nats = {cut: e.nats for cut, e in tried}
    of_p = averaged([nats[cut] for cut in _TRIED if cut.top_p < 1], _SHARES_P)
    of_k = averaged([nats[cut] for cut in _TRIED if cut.top_k])
    of_min = averaged([nats[cut] for cut in _TRIED if cut.min_p])
    yield Explanation(
        "truncated_sampling",
        f"{best}, as the tokens say: none lies outside; the log-probabilities are those of the model itself",
        evidence=averaged([of_p, of_k, of_min]),
        begins=begins(case, found.part_N),
        data=best._asdict() | {"raw": True},
    )
    outside_N = usable_N & (rank_N >= declared_N) & (declared_N < ALL) & _far(case, top, declared_N)
    if outside_N.sum() >= 3:
        yield from _not_applied(case, outside_N)


def _far(case: MismatchCase, top: Likeliest, declared_N: Ints) -> Truths:
    """Tokens that are further below the last one that is kept than rounding puts two of them in another order."""
    beta_N = betas(case.declared_N)
    last_N = np.clip(declared_N, 1, top.top_NK.shape[1]) - 1
    edge_N = top.top_NK[np.arange(len(last_N)), last_N]
    return case.found.tempered(beta_N) < edge_N - 2 * case.noise.largest * case.unit_N * beta_N


def _not_applied(case: MismatchCase, outside_N: np.ndarray) -> Iterator[Explanation]:
    first = int(np.flatnonzero(outside_N)[0])
    yield Explanation(
        "truncated_sampling",
        f"less is cut off than is declared: {outside_N.sum()} tokens lie outside",
        evidence=10.0 * float(outside_N.sum()),
        begins=case.place(first),
    )
