"""Errors of a judge: what it pays that failed, and what it does not pay that was solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.evaluation.statistics import proportion
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.asking import JudgeAudit, paid_share
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.trust.asked import JudgedItem
from turnwise.trainers.trust.corpus import FAULTS, GOLD, WRITTEN


class Confusion(NamedTuple):
    """Counts of verdicts: paid and solved, paid and failed, not paid and solved, not paid and failed."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def precision(self) -> float | None:
        """Of what is paid, the share that was solved; None of nothing.

        By hand, the book's counts.

        >>> one = Confusion(43, 1, 7, 49)
        >>> [round(x, 4) for x in (one.precision, one.recall, one.false_accept, one.false_reject)]
        [0.9773, 0.86, 0.02, 0.14]
        """
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Of what was solved, the share that is paid."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def false_accept(self) -> float | None:
        """Of what failed, the share that is paid."""
        return _ratio(self.fp, self.fp + self.tn)

    @property
    def false_reject(self) -> float | None:
        """Of what was solved, the share that is not paid."""
        return _ratio(self.fn, self.tp + self.fn)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def corrected(observed: float, false_accept: float, false_reject: float) -> float | None:
    """Return the share of solved episodes behind an observed share of paid ones: (p − FPR)/(1 − FPR − FNR), within 0 and 1 (Rogan and Gladen 1978).

    By hand, the book's numbers.

    >>> round(corrected(0.60, 0.02, 0.14), 4), corrected(0.5, 0.6, 0.4)
    (0.6905, None)
    """
    scale = 1 - false_accept - false_reject
    return min(1.0, max(0.0, (observed - false_accept) / scale)) if scale > 0 else None


@audit(110, paper="2505.22203")
def verdicts(asked: JudgeAudit) -> AuditFinding:
    """False accepts and false rejects on solutions, floors, faults and probes, with what the true rates are at most.

    An episode is paid where the judge's score is above the threshold, and its truth is the environment's. Intervals are clustered by task;
    the bounds hold for any distribution of errors (:mod:`turnwise.trainers.trust.bounds`), of tasks like these.
    """
    judged = asked.of(GOLD, *FAULTS, WRITTEN)
    if not judged:
        raise TurnwiseError("The judge was asked about no episode.", "Audit more tasks.")
    counts = count(judged)
    figures: list[AuditFigure] = []
    said: list[str] = []
    for rate in ("false_accept", "false_reject"):
        try:
            found, upper = asked.bound(rate)
        except TurnwiseError as error:
            said.append(error.cause)
            continue
        figures += [
            share(rate, found, f"of {found.n}"),
            AuditFigure(f"{rate}_at_most", upper, None, "share", f"but for a chance of {asked.plan.level:g}"),
        ]
    figures += [
        AuditFigure(
            "precision", counts.precision, None, "share", f"of {counts.tp + counts.fp} that are paid"
        ),
        AuditFigure("recall", counts.recall, None, "share", f"of {counts.tp + counts.fn} that were solved"),
    ]
    if counts.false_accept is not None and counts.false_reject is not None:
        paid = (counts.tp + counts.fp) / len(judged)
        true = corrected(paid, counts.false_accept, counts.false_reject)
        figures.append(
            AuditFigure("solved behind the paid share", true, None, "share", "corrected for the errors")
        )
    rows = [_row(kind, [one for one in judged if one.item.kind == kind]) for kind in (GOLD, *FAULTS, WRITTEN)]
    table = AuditTable(
        "by kind",
        ("kind", "episodes", "solved", "paid", "paid of failed", "from", "to"),
        [r for r in rows if r],
    )
    return AuditFinding(figures, (table,), said=said)


def count(judged: Sequence[JudgedItem]) -> Confusion:
    """The counts of some verdicts."""
    pairs = [(one.paid, one.item.solved) for one in judged]
    return Confusion(
        *(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False)))
    )


def _row(kind: str, judged: Sequence[JudgedItem]) -> Sequence[Cell]:
    if not judged:
        return ()
    failed = [one for one in judged if not one.item.solved]
    solved = proportion([one.item.solved for one in judged], [one.item.task for one in judged]).mean
    if not failed:
        return (kind, len(judged), solved, paid_share(judged).mean, None, None, None)
    of_failed = paid_share(failed)
    return (kind, len(judged), solved, paid_share(judged).mean, of_failed.mean, *of_failed.interval)
