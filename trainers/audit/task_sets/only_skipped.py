"""Tasks that pass since their tests were skipped, or none ran."""

from __future__ import annotations

import re

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, Judged, ProbedSet, ProbedTask, quoted

_RAISED = ("SkipTest", "Skipped")
_LOG = re.compile(
    r"(?:no tests ran|collected 0 items|Ran 0 tests|\b\d+ skipped in|OK \(skipped=\d+\)|0 passing|# tests 0\b)[^\n]{0,60}",
    re.IGNORECASE,
)


@audit()
def only_skipped(probed: ProbedSet) -> AuditFinding:
    """Tasks that pay though every test was skipped or none was collected, also where the agent sees to that."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    for seen in one.judged:
        if one.accepts(seen.verdict) and seen.mode in ("plain", "trace") and (told := skipped(seen)):
            return Evidence(f"{seen.attempt.agent} is paid with {told}")
    garbage = one.paid("garbage")
    elsewhere = next(one.of("garbage", mode="elsewhere"), None)
    if (
        garbage
        and elsewhere
        and not elsewhere.verdict.error
        and elsewhere.verdict.score is not None
        and not one.accepts(elsewhere.verdict)
    ):
        return Evidence(
            "garbage is paid here and refused on another operating system, for which its tests are"
        )
    paid = one.paid("skip")
    if paid is None or one.paid("garbage", "no-op", "empty"):
        return None
    return Evidence(
        f"an agent that has the tests skipped is paid: {quoted(paid.attempt.label or paid.attempt.text, 100)!r}"
    )


def uncollected(seen: Judged) -> bool:
    """True if a verdict came though pytest found no test at all."""
    return bool(seen.verdict.tests) and not any(seen.verdict.tests.values())


def skipped(seen: Judged) -> str:
    """Say how a verdict came without a test that ran; "" where one did."""
    tests = seen.verdict.tests
    ran = sum(tests.get(name, 0) for name in ("passed", "failed", "error", "xfailed", "xpassed"))
    if tests and not ran:
        return (
            f"{tests['skipped']} tests skipped and none run" if tests.get("skipped") else "no test collected"
        )
    if tests:
        return ""
    trace = seen.verdict.trace or {}
    results = trace.get("results") or {}
    if results.get("addSkip") and not sum(
        results.get(n, 0) for n in ("addSuccess", "addFailure", "addError")
    ):
        return f"{results['addSkip']} tests skipped and none run"
    raised = [row for row in trace.get("raised") or () if row[0] in _RAISED]
    if raised and not results and not sum((trace["reached"]["assert"], trace["reached"]["compare"])):
        return f"{raised[0][0]} raised: {raised[0][1]!r}"
    if not results and " passed" not in seen.verdict.log and (found := _LOG.search(seen.verdict.log)):
        return f"the log saying {quoted(found.group(), 80)!r}"
    return ""
