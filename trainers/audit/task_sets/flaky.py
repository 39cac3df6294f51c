"""Tasks that judge the same answer twice and say different things."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import AGAIN, Evidence, ProbedSet, ProbedTask, quoted


@audit()
def flaky(probed: ProbedSet) -> AuditFinding:
    """Tasks whose verdict on one answer changes: asked again, in another order, by another seed, at another date.

    Before it is said, the judge is asked with time limits of its own that are many times longer, since a busy machine is no fault of a task.
    """
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if one.changing is None:
        return None
    before, after = one.changing
    given = quoted(after.attempt.label or after.attempt.text, 60)
    said = f"{after.attempt.agent} {given!r} gets {before.verdict.said} and then {after.verdict.said}"
    if one.hurried:
        return Evidence(f"{said}, and not so where the judge's own time limits are longer", "look")
    return Evidence(f"{said}: it changes {AGAIN[after.mode]}")
