"""Tasks that pay whatever they are given."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import WRONG, Evidence, ProbedSet, ProbedTask


@audit()
def always_one(probed: ProbedSet) -> AuditFinding:
    """Tasks that pay every answer: nothing, a shrug, garbage and the answers of other tasks alike."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if not one.always:
        return None
    got = ", ".join(f"{seen.attempt.agent}: {seen.verdict.said}" for seen in list(one.of(*WRONG))[:4])
    return Evidence(f"every wrong answer is paid ({got})")
