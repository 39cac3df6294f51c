"""Tasks that refuse their own answer."""

from __future__ import annotations

import re

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted


@audit()
def gold_refused(probed: ProbedSet) -> AuditFinding:
    """Tasks that do not pay the answer or solution that they bring, in any form in which judges want it."""
    return defects(probed, _detect)


_SEPARATED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def _as_written(one: ProbedTask) -> Evidence | None:
    """An answer with thousands separators that is paid only where they are left out."""
    if not _SEPARATED.fullmatch(one.task.core):
        return None
    golds = list(one.of("gold"))
    written = [seen for seen in golds if one.task.core in seen.attempt.text]
    if any(one.accepts(seen.verdict) for seen in written) or not any(one.accepts(s.verdict) for s in golds):
        return None
    return Evidence(
        f"its own answer {one.task.core!r} is refused as it is written, and paid without its separators"
    )


def _detect(one: ProbedTask) -> Evidence | None:
    if told := _as_written(one):
        return told
    if (
        one.gold is None
        or one.gold.verdict.network
        or any(one.accepts(seen.verdict) for seen in one.judged if seen.attempt.agent == "gold")
    ):
        return None
    why = f"; {quoted(one.gold.verdict.log, 300)}" if one.gold.verdict.log else ""
    return Evidence(f"its own answer {quoted(one.gold.attempt.text, 80)!r} gets {one.gold.verdict.said}{why}")
