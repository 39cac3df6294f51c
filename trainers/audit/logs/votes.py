"""Votes among the runs of a task by their last action, plain and weighted by a score."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence

from turnwise.agents.evaluation.statistics import score_mean
from turnwise.tasks.core import derive_rng
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.audit.scores import episode_scores
from turnwise.trainers.kit.spoken import said

_LISTED = 2000  # subsets that are listed; beyond that, this many are drawn


@audit(152, paper="2502.07191")
def votes(played: LoggedGroups, *, score: str = "", fold: str = "min", k: int = 0) -> AuditFinding:
    """Success of the answer that most of k runs give, with votes weighted by a score if one is named (Bag of tricks).

    Plain: plurality over the last actions of k of the n runs without replacement, every subset or 2,000 drawn ones; ties share.
    Weighted: scores are min-max normalised over the candidates (all equal: 1), summed by answer, and the largest sum wins; of the
    winning answer the candidate with the best score is taken. Answers are equal if their words and calls are. Runs of agents
    often end in the same words after different deeds; what is voted for is then a way to end, and `best_of` is the better choice.

    >>> [round(x, 4) for x in normalised([.2, .9, .5, .5])], winner("ABCC", normalised([.2, .9, .5, .5]))
    ([0.0, 1.0, 0.4286, 0.4286], 1)
    >>> [round(voted("AABC", [1, 1, 0, 0], k), 4) for k in (1, 2, 3, 4)]
    [0.5, 0.5, 0.6667, 1.0]

    Args:
        score: what weighs votes: a signal, confidence, return, or a weighted sum; plain votes alone if none is named.
        fold: from turns to an episode: min, mean, product, last, sum.
        k: the most runs that vote; as many as every task has, if 0.
    """
    groups = played.of(max(2, k), "votes")
    most = k or min(len(group.records) for group in groups)
    weights = episode_scores(played, score, fold) if score else None
    tasks = range(len(groups))
    ks = [n for n in range(1, most + 1) if n & (n - 1) == 0 or n == most]
    rows: list[Sequence[Cell]] = []
    ways: dict[str, list[list[float]]] = {"plain": []}
    for n in ks:
        ways["plain"].append(
            [voted([*map(said, g.episodes)], [e.success for e in g.episodes], n) for g in groups]
        )
        if weights is not None:
            places = [played.groups.index(group) for group in groups]
            ways.setdefault("weighted", []).append(
                [
                    weighted_vote(
                        [*map(said, g.episodes)], [e.success for e in g.episodes], weights[place], n
                    )
                    for g, place in zip(groups, places, strict=True)
                ]
            )
    curves: list[AuditCurve] = []
    figures: list[AuditFigure] = []
    for name, values in ways.items():
        found = [score_mean(x, tasks) for x in values]
        curves.append(AuditCurve(name, ks, [e.mean for e in found], [e.interval for e in found]))
        figures.append(share(f"{name} vote of {most}", found[-1]))
        rows += [
            (name, n, e.mean, f"{e.interval.low:.3f} … {e.interval.high:.3f}")
            for n, e in zip(ks, found, strict=True)
        ]
    return AuditFinding(
        figures,
        (AuditTable("success of the vote", ("", "k", "success", "95 % interval"), rows),),
        curves,
        ("k", "success"),
    )


def normalised(scores: Sequence[float]) -> list[float]:
    """Scores from 0 to 1 among these; 1 each where all are equal."""
    low, high = min(scores), max(scores)
    return [1.0] * len(scores) if high == low else [(score - low) / (high - low) for score in scores]


def winner(answers: Sequence[str], weights: Sequence[float]) -> int:
    """The place of the best-weighted candidate of the answer with the largest sum; the first of equal ones."""
    total: dict[str, float] = defaultdict(float)
    for answer, weight in zip(answers, weights, strict=True):
        total[answer] += weight
    won = max(total, key=lambda answer: total[answer])
    return max((i for i, answer in enumerate(answers) if answer == won), key=lambda i: weights[i])


def voted(answers: Sequence[str], right: Sequence[bool | int], k: int) -> float:
    """The expected success of the plurality of k answers; ties share, and so do runs that give the winning answer."""

    def of(chosen: Sequence[int]) -> float:
        tally: dict[str, list[int]] = defaultdict(list)
        for i in chosen:
            tally[answers[i]].append(int(right[i]))
        most = max(map(len, tally.values()))
        tied = [sum(x) / len(x) for x in tally.values() if len(x) == most]
        return sum(tied) / len(tied)

    return over_subsets(len(answers), k, of)


def weighted_vote(answers: Sequence[str], right: Sequence[bool], scores: Sequence[float], k: int) -> float:
    """The expected success of the weighted vote among k of the runs."""

    def of(chosen: Sequence[int]) -> float:
        place = winner([answers[i] for i in chosen], normalised([scores[i] for i in chosen]))
        return float(right[chosen[place]])

    return over_subsets(len(answers), k, of)


def over_subsets(n: int, k: int, value: Callable[[Sequence[int]], float]) -> float:
    """The mean over all subsets of k of n, or over 2,000 drawn ones where there are more."""
    if math.comb(n, k) <= _LISTED:
        found = [value(chosen) for chosen in itertools.combinations(range(n), k)]
    else:
        rng = derive_rng("votes", n, k)
        found = [value(sorted(rng.sample(range(n), k))) for _ in range(_LISTED)]
    return sum(found) / len(found)
