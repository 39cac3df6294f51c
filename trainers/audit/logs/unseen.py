"""The chance that what a policy rarely does is not seen among its samples."""

from __future__ import annotations

from turnwise.agents.evaluation.statistics import pass_at_k, score_mean
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit, share
from turnwise.trainers.audit.reading import LoggedGroups

SIZES = (8, 64, 512)


@audit(13, paper="2510.01180")
def unseen(played: LoggedGroups, *, rare: float = 0.01) -> AuditFinding:
    """Groups of N without a success: (1 − q)^N for a success of chance q, and of the tasks in this log (BroRL).

    The first three figures are the formula for ``rare``. The others are over the log's tasks: the share of groups of N runs that hold
    no success, without bias C(n−c, N)/C(n, N), for those N (powers of two) up to which every task was played; a group without a
    success teaches nothing.

    >>> [round(absent(0.01, n), 4) for n in SIZES]
    [0.9227, 0.5256, 0.0058]
    >>> from turnwise.trainers.audit.by_hand import groups
    >>> round(unseen(groups({"a": "1000", "b": "1100"})).value("groups of 2 without a success"), 4)
    0.3333

    Args:
        rare: q of the first three figures.
    """
    least = min(len(group.records) for group in played.groups)
    figures = [AuditFigure(f"(1 − {rare:g})^{n}", absent(rare, n), None, "share") for n in SIZES]
    size = 1
    while size <= least:
        values = [1 - pass_at_k(len(group.records), group.solved, size) for group in played.groups]
        figures.append(
            share(f"groups of {size} without a success", score_mean(values, [g.task for g in played.groups]))
        )
        size *= 2
    never = [group.task for group in played.groups if not group.solved]
    return AuditFinding(
        figures, said=[f"{len(never)} of {len(played.groups)} groups hold no success"], data={"never": never}
    )


def absent(q: float, n: int) -> float:
    """The chance (1 − q)^n that n samples do not hold what has the chance q."""
    return (1 - q) ** n
