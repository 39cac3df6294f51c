"""Tasks whose judge reaches for the network."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted


@audit()
def needs_network(probed: ProbedSet) -> AuditFinding:
    """Tasks whose judge wants to reach an address; installing what it needs while it judges is worth a look."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    places = dict.fromkeys(place for seen in one.judged for place in seen.verdict.network)
    if places:
        first = next(seen for seen in one.judged if seen.verdict.network)
        return Evidence(
            f"the judge reaches for {quoted(', '.join(places), 120)}; without a network {first.attempt.agent} gets {first.verdict.said}"
        )
    installs = dict.fromkeys(what for seen in one.judged for what in seen.verdict.installs)
    if installs:
        return Evidence(f"the judge installs when it judges: {quoted('; '.join(installs), 160)}", "look")
    return None
