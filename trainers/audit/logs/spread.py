"""Differences between the runs of one task: of their success, and of the ways in which they succeed."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import clustered_mean, pass_at_k, score_mean
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, audit, share
from turnwise.trainers.audit.reading import LoggedGroup, LoggedGroups
from turnwise.trainers.kit.spoken import spoken


@audit(122, paper="2502.12118")
def spread(played: LoggedGroups, *, small: float = 0.05) -> AuditFinding:
    """Spread of success within tasks: where it is near 0, imitation is enough (Setlur et al. 2025).

    Spread: the mean over tasks of √(n/(n−1) · p(1−p)), the deviation of success among the n runs of a task, without bias in its
    square. Ours, of successes alone: the deviation of their lengths in turns, and the share of pairs whose actions differ. Training by a verifier
    gains over cloning where correct traces differ much and success varies within tasks, and more so the more may be spent at test: at
    equal budgets of k runs a verifier takes a right one where there is one, 1 − C(n−c, k)/C(n, k), and without one any of them is taken, c/n.

    By hand, two tasks of (1, 0) and (1, 1): √(2 · ¼) = 0.7071 and 0; with a verifier ¾ at k = 1 and 1 at k = 2, without one ¾.

    >>> from turnwise.trainers.audit.by_hand import groups
    >>> found = spread(groups({"a": "10", "b": "11"}))
    >>> round(found.value("spread of success"), 4), found.value("pairs of successes that differ")
    (0.3536, 0.0)
    >>> [[*curve.y] for curve in found.curves], found.value("gain of a verifier at 2 runs")
    ([[0.75, 1.0], [0.75, 0.75]], 0.25)

    Args:
        small: the spread below which the verdict is that imitation is enough.
    """
    groups = played.of(2, "spread within tasks")
    tasks = range(len(groups))
    found = score_mean([deviation(group) for group in groups], tasks)
    mixed = score_mean([float(0 < g.solved < len(g.records)) for g in groups], tasks)
    figures = [
        share("spread of success", found, "0.71 at most, at two runs of which one is solved"),
        share("tasks with both", mixed),
    ]
    ks, curves = _budgets(groups)
    gain = curves[0].y[-1] - curves[1].y[-1]
    figures.append(
        AuditFigure(f"gain of a verifier at {ks[-1]} runs", gain, None, "share", "over any one of them")
    )
    ways = [(group.task, *_ways(group)) for group in groups if group.solved > 1]
    if ways:
        turns = clustered_mean([row[1] for row in ways], [row[0] for row in ways])
        figures += [
            AuditFigure("spread of turns of successes", turns.mean, turns.interval),
            share("pairs of successes that differ", score_mean([row[2] for row in ways], range(len(ways)))),
        ]
    if found.mean < small:
        verdict = (
            f"success hardly varies within tasks ({found.mean:.3f}): imitation of the successes is enough"
        )
    else:
        verdict = f"success varies within tasks ({found.mean:.3f}): rewards can tell runs of one task apart"
    return AuditFinding(figures, curves=curves, axes=("runs at test", "success"), said=[verdict])


def _budgets(groups: Sequence[LoggedGroup]) -> tuple[list[int], list[AuditCurve]]:
    """Success at equal budgets of runs: where a verifier chooses, and where any one is taken."""
    most, tasks = min(len(group.records) for group in groups), range(len(groups))
    ks = [k for k in range(1, most + 1) if k & (k - 1) == 0 or k == most]
    chosen = [score_mean([pass_at_k(len(g.records), g.solved, k) for g in groups], tasks) for k in ks]
    any_one = score_mean([g.solved / len(g.records) for g in groups], tasks)
    return ks, [
        AuditCurve("with a verifier", ks, [e.mean for e in chosen], [e.interval for e in chosen]),
        AuditCurve("without one", ks, [any_one.mean] * len(ks), [any_one.interval] * len(ks)),
    ]


def deviation(group: LoggedGroup) -> float:
    """√(n/(n−1) · p(1−p)) of a task's n runs."""
    n, p = len(group.records), group.solved / len(group.records)
    return math.sqrt(n / (n - 1) * p * (1 - p))


def _ways(group: LoggedGroup) -> tuple[float, float]:
    """Of a task's successes: the deviation of their turns, and the share of pairs whose actions differ."""
    solved = [episode.trajectory.turns for episode in group.episodes if episode.success]
    ways: Sequence[tuple[str, ...]] = [tuple(spoken(turn.action) for turn in turns) for turns in solved]
    pairs = [a != b for a, b in itertools.combinations(ways, 2)]
    return statistics.stdev([len(turns) for turns in solved]), sum(pairs) / len(pairs)
