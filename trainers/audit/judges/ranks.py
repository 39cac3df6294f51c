"""Rank agreement of what a judge says of turns with their true advantages."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import clustered_mean, within
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit


@audit()
def ranks(asked: JudgeAudit) -> AuditFinding:
    """Kendall's τ between what the judge says of each turn and the turn's advantage, by forks from the states before and after it.

    Turns of one task are compared with each other, ties as in τ-b; the interval is over tasks. The episodes are those of a policy that plays half
    like a demonstrator and half by chance. Forks have errors, so that a perfect judge stays below 1 where few are made.
    """
    if not asked.turns:
        raise TurnwiseError("No turn's true advantage was found.", "Make forks: `--forks 64`.")
    by_task: dict[str, list[tuple[float, float]]] = {}
    for turn in asked.turns:
        by_task.setdefault(turn.task, []).append((turn.said, turn.advantage))
    found = [tau for told in by_task.values() if (tau := kendall(told)) is not None]
    forks = f"{len(asked.turns)} turns of {len(by_task)} tasks, {asked.plan.forks} forks"
    if not found:
        return AuditFinding(
            (AuditFigure("tau", None, None, "number", forks),),
            said=("within each task the judge says the same of every turn",),
        )
    tau = clustered_mean(found, range(len(found)))
    error = sum(turn.error for turn in asked.turns) / len(asked.turns)
    return AuditFinding(
        (
            AuditFigure("tau", tau.mean, within(tau.interval, -1, 1), "number", forks),
            AuditFigure("standard error of an advantage", error, None, "number", "in the mean"),
        )
    )


def kendall(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Kendall's τ-b: (concordant − discordant) pairs over √((n₀ − n₁)(n₀ − n₂)), n₁ and n₂ those tied on one side; None where a side is constant.

    By hand: of 1–1, 2–3, 3–2 two pairs agree and one does not; with a tie, 1 of 3 pairs is tied on one side: 2/√(2·3).

    >>> kendall([(1, 1), (2, 3), (3, 2)]) == 1 / 3, kendall([(1, 1), (1, 2)]) is None
    (True, True)
    >>> round(kendall([(1, 1), (1, 2), (2, 3)]), 4)
    0.8165
    """
    agree = left = right = both = 0
    for i, (a, b) in enumerate(pairs):
        for c, d in pairs[:i]:
            one, other = (a > c) - (a < c), (b > d) - (b < d)
            agree += one * other
            left += one != 0
            right += other != 0
            both += 1
    return agree / (left * right) ** 0.5 if left and right else None
