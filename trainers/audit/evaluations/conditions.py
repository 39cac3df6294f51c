"""The same tasks under other conditions: what a plan or knowledge in the prompt changes."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit
from turnwise.trainers.audit.evaluations.moves import BINS, bin_of
from turnwise.trainers.audit.evaluations.shared import shared_tasks
from turnwise.trainers.audit.reading import EvaluatedSides


@audit(30, paper="2506.04723", named=True)
def conditions(played: EvaluatedSides) -> AuditFinding:
    """Δ = success under a condition − plain success, over all tasks and by the plain success (SPARKLE's diagnostics).

    The first evaluation is the plain one; the others were told a plan, or what they needed to know. A plan that helps where knowledge
    does not says that planning is the fault, and the reverse. Ours: paired intervals over tasks; bins are taken from odd plain runs
    and plain success from even ones, so that luck alone moves nothing.

    >>> from turnwise.trainers.audit.reading import EvaluatedSide
    >>> plain, told = {str(i): (float(i < 50),) for i in range(100)}, {str(i): (float(i < 42),) for i in range(100)}
    >>> knows = {str(i): (float(i < 61),) for i in range(100)}
    >>> named = [EvaluatedSide(*x) for x in (("plain", plain), ("plan", told), ("knowledge", knows))]
    >>> found = conditions(EvaluatedSides("", tuple(named)))
    >>> round(found.value("Δ of plan"), 4), round(found.value("Δ of knowledge"), 4)
    (-0.08, 0.11)
    """
    figures: list[AuditFigure] = []
    rows: list[Sequence[Cell]] = []
    plain = played.start.results
    for side in played.others("a condition"):
        tasks = shared_tasks(played.start, side)
        whole = paired_difference({t: plain[t] for t in tasks}, {t: side.results[t] for t in tasks})
        figures.append(AuditFigure(f"Δ of {side.label}", whole.difference, whole.interval))
        for name in BINS:
            its = [task for task in tasks if bin_of(plain[task][::2]) == name]
            if its:
                found = paired_difference(
                    {t: plain[t][1::2] or plain[t] for t in its}, {t: side.results[t] for t in its}
                )
                low, high = found.interval
                rows.append(
                    (
                        side.label,
                        name,
                        len(its),
                        found.before,
                        found.after,
                        found.difference,
                        f"{low:+.3f} … {high:+.3f}" if len(its) > 1 else "one task",
                    )
                )
    headings = ("condition", "plain solved", "tasks", "plain", "under it", "Δ", "95 % interval")
    return AuditFinding(figures, (AuditTable("by plain success", headings, rows),))
