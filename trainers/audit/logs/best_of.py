"""Success of the best of k runs by a score, and how far the score can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import Estimate, pass_at_k, proportion, score_mean
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import episode_scores
from turnwise.trainers.kit.spoken import reranked, said


@audit(6, 34, 52, 73, 92, paper="2505.11227")
def best_of(
    played: LoggedGroups, *, score: str = "", fold: str = "min", k: int = 0, threshold: float = 0.5
) -> AuditFinding:
    """Best of k by a score between random and oracle, with the score's precision, on hard tasks apart.

    Without bias (standard): scores sorted downwards, y_(j) the correctness of the j-th: Σ_j C(n−1−j, k−1)/C(n, k) · y_(j), with the
    mean of y within ties. Oracle is pass@k and random pass@1. The fold makes it the papers': ``min`` of turns (BiPRM, 34),
    ``product`` (Lessons of PRMs, 92), and any weighted sum such as DRM's 0.3·confidence + 0.4·relevance + 0.3·coherence (52). The
    reranker (Self-PRM, 6) takes the best score of all runs, ties by the majority's answer among them, and reports the precision of
    what is scored ``threshold`` or more, on tasks that at most half of the runs solve (ours) too. Judges and signals are others' parts.

    >>> y, s = [0, 1, 1, 0], [.9, .7, .4, .1]
    >>> [best_of_k(s, y, k) for k in (1, 2, 3, 4)]
    [0.5, 0.5, 0.25, 0.0]
    >>> "ABA"[reranked("ABA", [1, 0, 1])]
    'A'
    >>> from turnwise.trainers.audit.scores import FOLDS
    >>> round(FOLDS["product"]([.9, .8, .95]), 4), FOLDS["min"]([.85, .6, .56])
    (0.684, 0.56)
    >>> round(.3 * -.2 + .4 * .8 + .3 * .5, 4)
    0.41

    Args:
        score: what ranks: a signal, confidence, return, or a weighted sum.
        fold: from turns to an episode: min, mean, product, last, sum.
        k: the largest k; as many runs as every task has, if 0.
        threshold: the score from which a run counts as called right.
    """
    groups = played.of(max(2, k), "a choice among runs")
    every = episode_scores(played, score, fold)
    scores = [every[played.groups.index(group)] for group in groups]
    right = [[float(e.success) for e in group.episodes] for group in groups]
    most = k or min(map(len, right))
    ks, tasks = [n for n in range(1, most + 1) if n & (n - 1) == 0 or n == most], range(len(groups))
    by_k: dict[str, list[Estimate]] = {
        "best by score": [
            score_mean([best_of_k(s, y, n) for s, y in zip(scores, right, strict=True)], tasks) for n in ks
        ],
        "oracle": [score_mean([pass_at_k(len(y), round(sum(y)), n) for y in right], tasks) for n in ks],
    }
    chosen = [y[reranked([*map(said, g.episodes)], s)] for g, s, y in zip(groups, scores, right, strict=True)]
    figures: list[AuditFigure] = [
        share("random", score_mean([sum(y) / len(y) for y in right], tasks)),
        share("reranked", score_mean(chosen, tasks), "best of all runs, ties by majority"),
        *(share(f"{name} of {most}", found[-1]) for name, found in by_k.items()),
        *_precision(scores, right, threshold),
    ]
    rows: list[Sequence[Cell]] = [
        (
            n,
            *(
                cell
                for found in by_k.values()
                for cell in (found[i].mean, f"{found[i].interval.low:.3f} … {found[i].interval.high:.3f}")
            ),
        )
        for i, n in enumerate(ks)
    ]
    curves = [
        AuditCurve(name, ks, [e.mean for e in found], [e.interval for e in found])
        for name, found in by_k.items()
    ]
    table = AuditTable("best of k", ("k", "best by score", "95 % interval", "oracle", "95 % interval"), rows)
    return AuditFinding(figures, (table,), curves, ("k", "success"))


def best_of_k(scores: Sequence[float], right: Sequence[float], k: int) -> float:
    """The expected correctness of the best-scored of k runs that are drawn without replacement."""
    n = len(scores)
    order = sorted(range(n), key=lambda i: -scores[i])
    shared = _within_ties([scores[i] for i in order], [right[i] for i in order])
    return sum(math.comb(n - 1 - j, k - 1) * y for j, y in enumerate(shared)) / math.comb(n, k)


def _within_ties(scores: Sequence[float], right: Sequence[float]) -> list[float]:
    mean: dict[float, list[float]] = {}
    for score, y in zip(scores, right, strict=True):
        mean.setdefault(score, []).append(y)
    return [sum(mean[score]) / len(mean[score]) for score in scores]


def _precision(
    scores: Sequence[Sequence[float]], right: Sequence[Sequence[float]], threshold: float
) -> list[AuditFigure]:
    """Share of runs called right that are, over all tasks and over those that at most half of the runs solve."""
    figures: list[AuditFigure] = []
    for name, hardest in (("precision", 1.0), ("precision on hard tasks", 0.5)):
        called = [
            (y > 0, task)
            for task, (row, its) in enumerate(zip(scores, right, strict=True))
            if sum(its) / len(its) <= hardest
            for score, y in zip(row, its, strict=True)
            if score >= threshold
        ]
        if called:
            figures.append(
                share(
                    name,
                    proportion([y for y, _ in called], [task for _, task in called]),
                    f"of runs scored {threshold:g} or more",
                )
            )
        else:
            figures.append(AuditFigure(name, None, None, "share", f"no run is scored {threshold:g} or more"))
    return figures
