"""Tasks that pay whatever they are given."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import WRONG, Evidence, ProbedSet, ProbedTask, quoted


@audit()
def always_one(probed: ProbedSet) -> AuditFinding:
    """Tasks that pay every answer: nothing, a shrug, garbage and the answers of other tasks alike."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if not one.always:
        return _whatever_is_in_form(one)
    got = ", ".join(f"{seen.attempt.agent}: {seen.verdict.said}" for seen in list(one.of(*WRONG))[:4])
    return Evidence(f"every wrong answer is paid ({got})")


def _whatever_is_in_form(one: ProbedTask) -> Evidence | None:
    """A judge that looks at the form alone: garbage is paid in every form in which the right answer is."""
    paid = {seen.attempt.label for seen in one.of("gold") if one.accepts(seen.verdict)}
    formed = [seen for seen in one.of("formed") if seen.attempt.label in paid]
    if not formed or len(formed) < len(paid) or not all(one.accepts(seen.verdict) for seen in formed):
        return None
    return Evidence(
        f"garbage in the form of the right answer is paid: {quoted(formed[0].attempt.text, 80)!r} gets {formed[0].verdict.said}"
    )
