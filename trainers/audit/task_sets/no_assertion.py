"""Tasks whose tests pass without having checked anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.only_skipped import skipped, uncollected
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.answers import NONSENSE
from turnwise.trainers.audit.xray.core import Evidence, Judged, ProbedSet, ProbedTask, quoted


@audit()
def no_assertion(probed: ProbedSet) -> AuditFinding:
    """Tasks that pay though their tests' code reached no assertion, comparison or branch."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    if one.unsteady:  # then what was paid once says little
        return None
    nonsense = next((seen for seen in one.of("key word") if _returns_nonsense(one, seen)), None)
    if nonsense is not None and not any(skipped(seen) for seen in one.judged if one.accepts(seen.verdict)):
        return Evidence(
            f"a function of the right name that returns nonsense is paid: {quoted(nonsense.attempt.text, 80)!r}"
        )
    for seen in one.judged:
        trace = seen.verdict.trace
        if not one.accepts(seen.verdict):
            continue
        if seen.attempt.agent != "skip" and uncollected(seen):
            return Evidence(
                f"{seen.attempt.agent} is paid, and no test was collected that could assert anything"
            )
        if trace is None or skipped(seen):
            continue
        wrong = seen.attempt.agent != "gold" or one.paid("garbage", "no-op", "empty", "wrong") is not None
        if told := _unchecked(trace, wrong):
            return Evidence(f"{seen.attempt.agent} is paid, and {told}")
    return None


def _returns_nonsense(one: ProbedTask, seen: Judged) -> bool:
    return NONSENSE in seen.attempt.text and "def " in seen.attempt.text and one.accepts(seen.verdict)


def _unchecked(trace: Mapping[str, Any], wrong_too: bool) -> str:
    reached, had = trace["reached"], trace["had"]
    if reached["assert"] or reached["call"]:
        return ""
    if had and wrong_too:
        return f"none of {had} assertions was reached"
    if wrong_too and trace.get("optimized"):
        return "the tests run with -O, which leaves assertions out"
    if wrong_too and trace.get("children") and not reached["compare"] and not reached["branch"]:
        return "no assertion, comparison or branch was reached in what ran"
    if trace.get("tests") and not had and not reached["compare"] and not reached["branch"]:
        return "the tests hold no assertion, comparison or branch that was reached"
    if trace.get("tests") and had:
        return f"none of {had} assertions was reached"
    return ""
