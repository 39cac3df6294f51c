"""Tasks that pay for nothing."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted


@audit()
def empty_accepted(probed: ProbedSet) -> AuditFinding:
    """Tasks that pay an empty answer, a shrug, or an agent that does nothing, though not everything."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if one.unsteady:  # then what was paid once says little
        return None
    paid = one.paid("empty", "no-op")
    if paid is None or one.always:
        return None
    return Evidence(
        f"{paid.attempt.agent} ({quoted(paid.attempt.label or paid.attempt.text, 60)!r}) gets {paid.verdict.said}"
    )
