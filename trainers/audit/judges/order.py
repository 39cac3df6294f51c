"""Order bias of a judge that compares: what is shown first gains by it."""

from __future__ import annotations

from turnwise.agents.evaluation.statistics import proportion, score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit, share


@audit()
def order(asked: JudgeAudit) -> AuditFinding:
    """Gain of a score by being shown first, and the share of pairs whose winner the order decides.

    Each pair of episodes of a task is judged in both orders; 0 for a judge that order does not sway. Judges that read
    episodes one by one have no order.
    """
    if not asked.reading.relative:
        raise TurnwiseError(
            f"The judge {asked.judge} reads episodes one by one by {asked.reading.signal!r}, so that there is no order.",
            "It is measured of judges that compare, such as tournament.",
        )
    tasks = [one.item.task for one in asked.judged]
    gap = score_mean([one.gap for one in asked.judged], tasks)
    flips = proportion([one.gap != 0 for one in asked.judged], tasks)
    return AuditFinding(
        (
            AuditFigure("gain by being first", gap.mean, gap.interval, "number", f"over {gap.n} pairs"),
            share("decided by the order", flips),
        )
    )
