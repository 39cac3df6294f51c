"""Tasks that never pay."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask


@audit()
def always_zero(probed: ProbedSet) -> AuditFinding:
    """Tasks of which nothing that was tried is paid, the right answer included."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    plain = [seen for seen in one.judged if seen.mode == "plain"]
    scored = [seen for seen in plain if seen.verdict.score is not None]
    if (
        one.gold is None
        or one.gold.verdict.network
        or not scored
        or any(one.accepts(seen.verdict) for seen in one.judged)
    ):
        return None
    return Evidence(
        f"{len(plain)} answers were tried, the right one among them, and the highest score was {max(s.verdict.score or 0 for s in scored):g}"
    )
