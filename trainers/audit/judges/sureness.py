"""Calibration of a judge: how far its scores are from the chance that the task was solved."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, AuditTable, Cell, audit
from turnwise.trainers.audit.logs.calibration import auroc, binned, expected_error
from turnwise.trainers.trust.corpus import FAULTS, GOLD, WRITTEN


@audit(110, 139)
def sureness(asked: JudgeAudit) -> AuditFinding:
    """Error of the scores by bins (ECE), their Brier score, and how well they rank solved episodes before failed ones (AUROC).

    A score is taken for the chance that the task was solved; formulas are those of the audit `calibration` of logs. ECE and Brier score
    depend on how many of the episodes were solved.
    """
    if asked.reading.relative:
        raise TurnwiseError(
            f"{asked.reading.signal!r} says who is better, and is no chance.",
            "Its errors are under `verdicts`.",
        )
    judged = asked.of(GOLD, *FAULTS, WRITTEN)
    if not judged:
        raise TurnwiseError("The judge was asked about no episode.", "Audit more tasks.")
    q, y = [one.score for one in judged], [float(one.item.solved) for one in judged]
    bins = binned(q, y)
    brier = score_mean([(a - b) ** 2 for a, b in zip(q, y, strict=True)], [one.item.task for one in judged])
    rows: list[Sequence[Cell]] = [(f"{b.low:.1f} …", b.n, b.confidence, b.right) for b in bins]
    return AuditFinding(
        (
            AuditFigure("ECE", expected_error(bins), None, "number", "0 where scores are chances"),
            AuditFigure("Brier score", brier.mean, brier.interval),
            AuditFigure("AUROC", auroc(q, y), None, "number", "0.5 where scores say nothing"),
        ),
        (AuditTable("by score", ("from", "episodes", "score", "solved"), rows),),
        (AuditCurve("solved", [b.confidence for b in bins], [b.right for b in bins]),)
        if len(bins) > 1
        else (),
        ("score", "solved"),
    )
