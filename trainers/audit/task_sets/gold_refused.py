"""Tasks that refuse their own answer."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted


@audit()
def gold_refused(probed: ProbedSet) -> AuditFinding:
    """Tasks that do not pay the answer or solution that they bring, in any form in which judges want it."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if (
        one.gold is None
        or one.gold.verdict.network
        or any(one.accepts(seen.verdict) for seen in one.judged if seen.attempt.agent == "gold")
    ):
        return None
    why = f"; {quoted(one.gold.verdict.log, 300)}" if one.gold.verdict.log else ""
    return Evidence(f"its own answer {quoted(one.gold.attempt.text, 80)!r} gets {one.gold.verdict.said}{why}")
