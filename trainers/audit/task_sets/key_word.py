"""Tasks that pay for a word."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted


@audit()
def key_word(probed: ProbedSet) -> AuditFinding:
    """Tasks that pay a master key such as "correct", or single words of their answer or rubric."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if one.unsteady:  # then what was paid once says little
        return None
    holds = one.task.core.casefold() in one.task.prompt.casefold()
    paid = one.paid("key word", "formed") or (None if holds or not one.task.core else one.paid("copy"))
    if paid is None or one.always or one.paid("garbage"):
        return None
    return Evidence(f"{quoted(paid.attempt.label or paid.attempt.text, 80)!r} gets {paid.verdict.said}")
