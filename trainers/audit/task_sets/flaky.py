"""Tasks that judge the same answer twice and say different things."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import AGAIN, Evidence, ProbedSet, ProbedTask, quoted


@audit()
def flaky(probed: ProbedSet) -> AuditFinding:
    """Tasks whose verdict on one answer changes: asked again, in another order, by another seed, at another date."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if one.unsteady is None:
        return None
    before, after = one.unsteady
    given = quoted(after.attempt.label or after.attempt.text, 60)
    return Evidence(
        f"{after.attempt.agent} {given!r} gets {before.verdict.said} and then {after.verdict.said}: it changes {AGAIN[after.mode]}"
    )
