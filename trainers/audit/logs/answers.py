"""Entropy of what a policy answers, beside that of its tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from turnwise.agents.evaluation.statistics import clustered_mean
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.kit.spoken import said


@audit(116, paper="2507.14843")
def answers(played: LoggedGroups) -> AuditFinding:
    """Entropy of last actions within tasks, beside the mean entropy of tokens where that was logged (The Invisible Leash).

    H = −Σ p log p in nats over the distinct last actions of a task's runs, plug-in as in the paper, which is biased low by about
    (distinct − 1)/2n; the mean over tasks. Tokens may grow more uncertain while answers grow fewer. The entropy of tokens is in logs of runs
    with ``log: {entropy: true}`` in their recipe.

    >>> round(entropy("AAAB"), 4)
    0.5623
    """
    several = played.of(2, "entropy of answers")
    of = [(g.task, entropy(map(said, g.episodes)), len(set(map(said, g.episodes)))) for g in several]
    found = clustered_mean([row[1] for row in of], [row[0] for row in of])
    distinct = clustered_mean([row[2] for row in of], [row[0] for row in of])
    figures = [
        AuditFigure("entropy of answers", found.mean, found.interval, about="nats, within tasks"),
        AuditFigure("distinct answers", distinct.mean, distinct.interval, about="of a task"),
    ]
    spread = [
        (group.task, token)
        for group in several
        for record in group.records
        for turns in record.entropies.values()
        for tokens in turns
        for token in tokens
    ]
    if not spread:
        return AuditFinding(
            figures,
            said=["the entropy of tokens was not logged (`log: {entropy: true}` in the recipe of a run)"],
        )
    tokens = clustered_mean([token for _, token in spread], [task for task, _ in spread])
    figures.append(AuditFigure("entropy of tokens", tokens.mean, tokens.interval, about="nats"))
    return AuditFinding(figures)


def entropy(values: Iterable[str]) -> float:
    """−Σ p log p of the shares of distinct values, in nats."""
    counts = Counter(values)
    n = sum(counts.values())
    return sum(-c / n * math.log(c / n) for c in counts.values())
