"""Weights of a sum of scores, by search, under which the best of k runs is right most often."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditFinding, AuditTable, audit, count
from turnwise.trainers.audit.logs.best_of import best_of_k
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import episode_scores, terms

Weights = tuple[float, ...]


@audit(52)
def weights(
    played: LoggedGroups, *, score: str = "", fold: str = "mean", k: int = 0, step: float = 0.1
) -> AuditFinding:
    """Weights of the score's terms by grid search for best of k (DRM), beside each term alone.

    DRM weighs confidence, relevance and coherence by a search on a validation set, which is a log here. Weights are steps on the simplex: at
    least 0, with the sum 1 (ours). Best of k is without bias, as in ``best_of``, whose table shows what they are worth on another
    log. Of weights that are as good, the nearest to equal ones are given (ours). ``credit: {name: drm, weights: …}`` takes them.

    By hand, one task of three runs of which the last is right: the second score alone finds it, the first does not.

    >>> from turnwise.trainers.audit.by_hand import episode, logged, turn
    >>> runs = [episode([turn("a", 0, signals={"sure": a, "wise": b})], solved=c) for a, b, c in ((.9, .2, 0), (.1, .4, 0), (.5, .9, 1))]
    >>> found = weights(logged({"x": runs}), score="sure+wise", step=0.5)
    >>> found.value("weight of sure"), found.value("weight of wise")
    (0.5, 0.5)
    >>> [row[1] for row in found.tables[0].rows]
    [1.0, 0.0, 1.0]

    Args:
        score: terms to weigh: signals, confidence, return, as in confidence+rlbff+principle.
        fold: from turns to an episode: min, mean, product, last, sum.
        k: runs to choose from; as many as every task has, if 0.
        step: distance between weights.
    """
    if not 0 < step <= 1:
        raise TurnwiseError(f"{step:g} is no step between weights.", "Give one above 0, at most 1.")
    groups = played.of(max(2, k), "a choice among runs")
    names = [term.name for term in terms(score)] if score else [""]
    chosen = replace(played, groups=tuple(groups))
    scores = [episode_scores(chosen, name, fold) for name in names]
    right = [[float(episode.success) for episode in group.episodes] for group in groups]
    among = k or min(map(len, right))
    best, success = best_weights(scores, right, round(1 / step), among)
    alone = [best_weights([one], right, 1, among)[1] for one in scores]
    rows = [("these weights", success), *zip(names, alone, strict=True)]
    said = f"best of {among} is right in {success:.3f} with weights [{', '.join(f'{w:g}' for w in best)}]"
    figures = [count(f"weight of {name}", w) for name, w in zip(names, best, strict=True)]
    return AuditFinding(figures, [AuditTable(f"best of {among}", ("score", "success"), rows)], said=[said])


def simplex(count: int, steps: int) -> Iterator[Weights]:
    """All weights of so many terms in ``steps`` equal steps, with the sum 1.

    >>> [*simplex(2, 2)], len([*simplex(3, 10)])
    ([(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)], 66)
    """
    for cuts in itertools.combinations(range(steps + count - 1), count - 1):
        ends = (-1, *cuts, steps + count - 1)
        yield tuple((b - a - 1) / steps for a, b in itertools.pairwise(ends))


def best_weights(
    scores: Sequence[Sequence[Sequence[float]]], right: Sequence[Sequence[float]], steps: int, k: int
) -> tuple[Weights, float]:
    """The weights of terms whose sum finds a right run most often, and how often; scores are by term, task and run."""

    def success(tried: Weights) -> float:
        found: list[float] = []
        for task, y in enumerate(right):
            mixed = [
                sum(w * one[task][run] for w, one in zip(tried, scores, strict=True)) for run in range(len(y))
            ]
            found.append(best_of_k(mixed, y, k))
        return mean(found)

    worth = [(success(tried), tried) for tried in simplex(len(scores), steps)]
    most = max(value for value, _ in worth)
    good = [tried for value, tried in worth if value > most - 1e-9]
    return min(good, key=lambda tried: sum(w * w for w in tried)), most
