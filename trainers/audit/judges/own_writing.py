"""Self-preference: a judge is kinder to what its own model wrote."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import clustered_mean, score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit
from turnwise.trainers.trust.corpus import WRITTEN


@audit()
def own_writing(asked: JudgeAudit) -> AuditFinding:
    """Score less truth of what the judge's own policy wrote, minus that of the other writers; 0 for a judge without self-preference.

    All writers play the same tasks, and truth (1 where the task was solved) is taken off, so that a better writer is no preference. Where the
    judge's policy is not among them, the first writer stands in its place. The measure is ours.
    """
    judged = asked.of(WRITTEN)
    writers = list(dict.fromkeys(one.item.writer for one in judged))
    if len(writers) < 2:
        raise TurnwiseError(
            f"{len(writers)} writers were judged, and a preference is between two.",
            "Name policies that play: `--writers POLICY POLICY`.",
        )
    own = asked.asks if asked.asks in writers else writers[0]
    excess: dict[str, dict[str, list[float]]] = {}
    for one in judged:
        excess.setdefault(one.item.task, {}).setdefault(one.item.writer, []).append(
            one.score - one.item.solved
        )
    gaps: list[float] = []
    tasks: list[str] = []
    for task, by in excess.items():
        others = [x for writer, told in by.items() if writer != own for x in told]
        if own in by and others:
            gaps.append(_mean(by[own]) - _mean(others))
            tasks.append(task)
    if not gaps:
        raise TurnwiseError("No task was played by two of the writers.", "Audit more tasks.")
    found = clustered_mean(gaps, tasks)
    rows: list[Sequence[Cell]] = []
    for writer in writers:
        told = [one for one in judged if one.item.writer == writer]
        scored = score_mean([one.score for one in told], [one.item.task for one in told])
        rows.append((writer, len(told), _mean([float(one.item.solved) for one in told]), scored.mean))
    return AuditFinding(
        (
            AuditFigure(
                "preference", found.mean, found.interval, "number", f"for {own}, over {len(gaps)} tasks"
            ),
        ),
        (AuditTable("by writer", ("writer", "episodes", "solved", "score"), rows),),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
