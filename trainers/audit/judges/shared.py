"""Findings that audits of judges share."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.evaluation.statistics import proportion, score_mean, wilson
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.asking import JudgeAudit, paid_share
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, share
from turnwise.trainers.trust.asked import JudgedItem


def attacks(asked: JudgeAudit, kinds: Sequence[str]) -> AuditFinding:
    """The share of failed episodes of these kinds that is paid, together and by name.

    Raises:
        TurnwiseError: none was judged.
    """
    judged = [one for one in asked.of(*kinds) if not one.item.solved]
    if not judged:
        raise TurnwiseError(
            f"No failed episode of the kind {' or '.join(kinds)} was judged.",
            "Audit more tasks, or more faults of each.",
        )
    rows: list[Sequence[Cell]] = []
    for name in dict.fromkeys(one.item.name for one in judged):
        own = [one for one in judged if one.item.name == name]
        paid = sum(one.paid for one in own)
        rows.append((name, len(own), paid / len(own), *wilson(paid, len(own))))
    rows.sort(key=lambda row: -float(row[2] or 0))
    worst = rows[0]
    said = [f"{worst[0]!r} is paid most often"] if worst[2] else ["none of them is ever paid"]
    headings = ("said", "episodes", "paid", "from", "to")
    return AuditFinding(
        (share("paid", paid_share(judged), f"of {len(judged)}"),),
        (AuditTable("by what is said", headings, rows),),
        said=said,
    )


def shifts(pairs: Sequence[tuple[JudgedItem, JudgedItem]]) -> list[AuditFigure]:
    """Changes of scores and verdicts between an episode as it was played and as it was edited."""
    tasks = [edited.item.task for edited, _ in pairs]
    rises = score_mean([edited.score - plain.score for edited, plain in pairs], tasks)
    told = [
        ("newly paid", [edited.paid and not plain.paid for edited, plain in pairs]),
        ("no longer paid", [plain.paid and not edited.paid for edited, plain in pairs]),
    ]
    return [
        AuditFigure("rise of the score", rises.mean, rises.interval, "number", f"over {len(pairs)} episodes"),
        *(share(name, proportion(changed, tasks)) for name, changed in told),
    ]
