"""Likeness of the runs of one task by the sequences of their acts: where it rises to 1, the policy has one way left."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditFinding, audit, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.kit.spoken import spoken


@audit(178)
def similarity(played: LoggedGroups, *, n: int = 2) -> AuditFinding:
    """Mean overlap of n-grams of acts over all pairs of runs of a task, the sign of collapse under a reward.

    2·|A ∩ B| / (|A| + |B|) for the multisets of n acts in a row of two runs. SuperHF compares completions of words by METEOR; by acts and
    within tasks it is ours. A run shorter than n is one n-gram. Acts are equal if their words and calls are, but for case and white space.

    By hand: of the pairs of acts of look-take-go and look-take-wait, one of two is shared.

    >>> overlap("abc", "abd", 2), overlap("abc", "abc", 2), overlap("ab", "cd", 1), overlap("a", "a", 2)
    (0.5, 1.0, 0.0, 1.0)

    Args:
        n: how many acts in a row.
    """
    if n < 1:
        raise TurnwiseError(f"n={n} acts in a row are no sequence.", "Set n to 1 or more.")
    groups = played.of(2, "a comparison of runs")
    means: list[float] = []
    for group in groups:
        acts = [[spoken(turn.action) for turn in one.trajectory.turns] for one in group.episodes]
        pairs = [overlap(one, two, n) for one, two in itertools.combinations(acts, 2)]
        means.append(sum(pairs) / len(pairs))
    found = score_mean(means, [group.task for group in groups])
    return AuditFinding([share(f"overlap of {n}-grams of acts", found, "1: all runs of a task are the same")])


def overlap(one: Sequence[str], two: Sequence[str], n: int) -> float:
    """The share of n-grams that two sequences share, as Dice's coefficient of multisets."""
    first, second = grams(one, n), grams(two, n)
    return 2 * (first & second).total() / (first.total() + second.total())


def grams(acts: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count each n acts in a row; a shorter sequence is one."""
    return Counter(tuple(acts[i : i + n]) for i in range(max(1, len(acts) - n + 1)))
