"""Tasks that pay when time is up."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted


@audit()
def time_out_passes(probed: ProbedSet) -> AuditFinding:
    """Tasks that refuse a wrong answer and pay it, or one that never ends, once the judge's time limit has passed."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if one.unsteady:  # then what was paid once says little
        return None
    if one.paid("garbage", "no-op", "empty"):
        return None
    for mode in ("time up", "killed"):
        for seen in one.judged:
            if seen.mode == mode and one.accepts(seen.verdict):
                how = (
                    "with every time limit passed"
                    if mode == "time up"
                    else "when its tests are killed before they end"
                )
                return Evidence(
                    f"{seen.attempt.agent} {quoted(seen.attempt.label or seen.attempt.text, 60)!r} gets {seen.verdict.said} {how}"
                )
    return None
