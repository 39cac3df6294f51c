"""Differences between the runs of one task: of their success, and of the ways in which they succeed."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import clustered_mean, score_mean
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit, share
from turnwise.trainers.audit.reading import LoggedGroup, LoggedGroups
from turnwise.trainers.kit.spoken import spoken


@audit(122, paper="2502.12118")
def spread(played: LoggedGroups, *, small: float = 0.05) -> AuditFinding:
    """Spread of success within tasks: where it is near 0, imitation is enough (Setlur et al. 2025).

    Spread: the mean over tasks of √(n/(n−1) · p(1−p)), the deviation of success among the n runs of a task, without bias in its
    square. Ours, of successes alone: the deviation of their lengths in turns, and the share of pairs whose actions differ. Training by a verifier
    gains over cloning where correct traces differ much and success varies within tasks.

    By hand, two tasks of (1, 0) and (1, 1): √(2 · ¼) = 0.7071 and 0.

    >>> from turnwise.trainers.audit.by_hand import groups
    >>> found = spread(groups({"a": "10", "b": "11"}))
    >>> round(found.value("spread of success"), 4), found.value("pairs of successes that differ")
    (0.3536, 0.0)

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
    return AuditFinding(figures, said=[verdict])


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
